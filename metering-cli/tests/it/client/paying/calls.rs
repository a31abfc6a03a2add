//! What is paid, and what is sent to whom.

use metering_core::{Clock, SystemClock};
use metering_pay::wire::x402::PaymentPayloadV1;
use serde_json::json;

use super::shop::{CALL, SHOP, TX, USDC, asks, assert_signed, offer, own_service, payments, settled, shop};
use crate::client::mcp::Client;
use crate::client::prices::CATALOGUE;
use crate::program::mode;
use crate::stand_in::{Reply, StandIn};

#[test]
fn first_offer_within_the_limit_is_paid_and_the_body_printed() {
    let (program, shop) = shop([asks(&[offer(500_000), offer(250_000), offer(1)]), settled(Reply::ok("{\"a\":1}"))]);
    let line = "call $shop/x?city=Paris --pay --max 0.25 -X put -d '{\"q\":1}' -H 'Accept: text/csv'";
    let ran = program.run(line).expect(0);
    let paid = format!("0.25 USDC on chain 84532 to {SHOP}");
    assert_eq!(ran.stdout, "{\"a\":1}");
    assert_eq!(ran.stderr, format!("Paying {paid}.\nPaid {paid} in transaction {TX}.\n"));
    let requests = shop.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("PUT", "/x?city=Paris"));
        assert_eq!((request.header("accept"), request.header("authorization")), (Some("text/csv"), None));
        assert_eq!(request.body, "{\"q\":1}");
    }
    let payment = assert_signed(requests[1].header("payment-signature").unwrap(), 250_000);
    assert_eq!((requests[0].header("payment-signature"), payment.accepted.amount.get()), (None, 250_000));
    let authorization = payment.signed.authorization;
    let now = u64::try_from(SystemClock.now().unix_seconds()).unwrap();
    assert!((now + 200..now + 301).contains(&authorization.valid_before), "{authorization:?}");

    let text = program.read("profiles/default/pay/journal.jsonl");
    assert!(text.contains(&program.text("$shop/x?city=Paris")) && text.contains("\"done\""), "{text}");
    assert!(!text.contains(&crate::program::OTHER_KEY[2..]), "{text}");
    assert_eq!(mode(&program.profile("default", "pay/journal.jsonl")), 0o600);
    // Paid calls are not asked for again.
    program.run(&format!("{line} --quiet")).success();
}

#[test]
fn each_finished_call_is_paid_for_itself() {
    let paid = |body| [asks(&[offer(50_000)]), settled(Reply::ok(body))];
    let (program, shop) = shop(["1", "2"].into_iter().flat_map(paid));
    for body in ["1", "2"] {
        assert_eq!(program.run(CALL).stdout, body);
    }
    let paid: Vec<_> = payments(&shop).into_iter().flatten().collect();
    assert_eq!(paid.len(), 2);
    let nonces: Vec<_> = paid.iter().map(|header| assert_signed(header, 50_000).signed.authorization.nonce).collect();
    assert_ne!(nonces[0], nonces[1]);
}

#[test]
fn version_1_is_paid_from_the_body() {
    let offer = json!({"scheme": "exact", "network": "base-sepolia", "maxAmountRequired": "50000", "asset": USDC,
        "payTo": SHOP, "maxTimeoutSeconds": 60, "resource": "https://shop.example/", "description": "", "mimeType": ""});
    let body = json!({"x402Version": 1, "error": "pay", "accepts": [offer]}).to_string();
    let (program, shop) = shop([Reply::new(402, body), Reply::ok("{}")]);
    let _ = program.run("call $shop/x --pay --max 0.05").expect(0);
    let request = shop.last();
    assert!(PaymentPayloadV1::parse(request.header("x-payment").unwrap()).is_ok());
    assert_eq!(request.header("payment-signature"), None);
}

#[test]
fn profiles_key_goes_with_the_payment_to_its_own_service_only() {
    let paid = || [asks(&[offer(50_000)]), Reply::ok("{}"), asks(&[offer(50_000)]), Reply::ok("{}")];
    let ((program, own), other) = (own_service("/x", paid()), StandIn::start());
    other.on_each("/x", paid());
    program.call("other", other.url());
    for target in ["/x", "$url/x", "$other/x"] {
        let _ = program.run(&format!("call {target} --pay --max 1")).expect(0);
    }
    let keys =
        |shop: &StandIn| -> Vec<_> { shop.requests().iter().map(|request| request.key().map(str::to_owned)).collect() };
    assert_eq!((keys(&own), keys(&other)), (vec![Some(program.text("$key")); 4], vec![None, None]));
}

#[test]
fn without_a_402_nothing_is_needed_to_pay() {
    let (program, shop) = shop([Reply::ok("{}")]);
    shop.on("/poor", Reply::error(402, "insufficient_credits"));
    let ran = program.run_without("METERING_CLIENT_WALLET_KEY", CALL);
    assert_eq!(ran.success(), "{}");
    program.refuses(&[("call $shop/poor --pay --max 1", 7, "(insufficient_credits)")]);
    assert!(!program.profile("default", "pay/journal.jsonl").exists());
    assert_eq!(payments(&shop), [None, None]);
}

#[test]
fn what_cannot_be_called_is_refused_before_sending() {
    let (program, shop) = shop([]);
    let lines = [
        "call http://far.example/ --pay --max 1",
        "call https://me:pw@far.example/ --pay --max 1",
        "call https://far.example/#x --pay --max 1",
        "call https://far.example/ --pay",
        "call https://far.example/ --pay --max -1",
        "call https://far.example/ --pay --max 0",
        "call https://far.example/ --max 1",
        "call /x --pay --max 1 -H 'X-PAYMENT: x'",
        "call /x --pay --max 1 --token USDC",
        "mcp --pay",
    ];
    crate::client::misuses(&program, &shop, &lines);
}

#[test]
fn tool_call_is_paid_within_the_limits() {
    let price = settled(Reply::ok(r#"{"price": "3000.5"}"#));
    let (program, service) = own_service("/mpp/ethPrice", [asks(&[offer(50_000)]), price, asks(&[offer(50_000)])]);
    service.on("/endpoints.json", Reply::ok(CATALOGUE));
    let mut client = Client::start(&program, "mcp --pay --max 0.05 --daily-limit 0.09");
    client.begin();
    let call = json!({ "name": "bds_mpp_ethPrice", "arguments": {} });
    let first = client.call("tools/call", call.clone());
    assert_eq!(first["structuredContent"]["data"]["price"], "3000.5", "{first}");
    let second = client.call("tools/call", call);
    assert_eq!((&second["isError"], &second["structuredContent"]["error"]), (&json!(true), &json!("payment_limit")));
    let (_, code, stderr) = client.end();
    assert_eq!(code, 0, "{stderr}");
    let sent: Vec<_> = payments(&service).into_iter().flatten().collect();
    assert_eq!(sent.len(), 1);
    assert_signed(&sent[0], 50_000);
}
