//! What is paid, and what is sent to whom.

use std::fs;

use metering_core::wire::x402::PaymentPayloadV1;
use metering_core::{Clock, SystemClock};
use serde_json::json;

use super::shop::{SHOP, TX, USDC, WALLET_KEY, asks, assert_signed, offer, payments, run, settled};
use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

#[test]
fn first_offer_within_the_limit_is_paid_and_the_body_printed() {
    let shop = StandIn::start();
    shop.on("/weather", asks(&[offer(500_000), offer(250_000), offer(1)]))
        .on("/weather", settled(Reply::ok("{\"a\":1}")));
    let home = Home::new();
    let url = format!("{}/weather?city=Paris", shop.url());
    let args = ["call", &url, "--pay", "--max", "0.25", "-X", "put", "-d", "{\"q\":1}", "-H", "Accept: text/csv"];
    let ran = run(&home, &args);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\"a\":1}"), "{ran:?}");
    let paid = format!("0.25 USDC on chain 84532 to {SHOP}");
    assert_eq!(ran.stderr, format!("Paying {paid}.\nPaid {paid} in transaction {TX}.\n"));
    let requests = shop.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("PUT", "/weather?city=Paris"));
        assert_eq!((request.header("accept"), request.header("authorization")), (Some("text/csv"), None));
        assert_eq!(request.body, "{\"q\":1}");
    }
    let payment = assert_signed(requests[1].header("payment-signature").unwrap(), 250_000);
    assert_eq!((requests[0].header("payment-signature"), payment.accepted.amount.get()), (None, 250_000));
    let authorization = payment.signed.authorization;
    let now = u64::try_from(SystemClock.now().unix_seconds()).unwrap();
    assert!((now + 200..now + 301).contains(&authorization.valid_before), "{authorization:?}");

    let journal = home.profile("default", "pay/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    assert!(text.contains(&url) && text.contains("\"done\"") && !text.contains(&WALLET_KEY[2..]), "{text}");
    #[cfg(unix)]
    assert_eq!(crate::home::mode(&journal), 0o600);
    let quiet = run(&home, &[&args[..], &["--quiet"]].concat());
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "paid calls are not asked for again: {quiet:?}");
}

#[test]
fn each_finished_call_is_paid_for_itself() {
    let shop = StandIn::start();
    for body in ["1", "2"] {
        shop.on("/x", asks(&[offer(50_000)])).on("/x", settled(Reply::ok(body)));
    }
    let home = Home::new();
    let url = format!("{}/x", shop.url());
    for body in ["1", "2"] {
        assert_eq!(run(&home, &["call", &url, "--pay", "--max", "1"]).stdout, body);
    }
    let paid: Vec<_> = payments(&shop).into_iter().flatten().collect();
    assert_eq!(paid.len(), 2);
    let nonces: Vec<_> = paid.iter().map(|header| assert_signed(header, 50_000).signed.authorization.nonce).collect();
    assert_ne!(nonces[0], nonces[1]);
}

#[test]
fn version_1_is_paid_from_the_body() {
    let shop = StandIn::start();
    let offer = json!({"scheme": "exact", "network": "base-sepolia", "maxAmountRequired": "50000", "asset": USDC,
        "payTo": SHOP, "maxTimeoutSeconds": 60, "resource": "https://shop.example/", "description": "", "mimeType": ""});
    let body = json!({"x402Version": 1, "error": "pay", "accepts": [offer]}).to_string();
    shop.on("/x", Reply::new(402, body)).on("/x", Reply::ok("{}"));
    let home = Home::new();
    let ran = run(&home, &["call", &format!("{}/x", shop.url()), "--pay", "--max", "0.05"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = shop.requests();
    assert!(PaymentPayloadV1::parse(requests[1].header("x-payment").unwrap()).is_ok());
    assert_eq!(requests[1].header("payment-signature"), None);
}

#[test]
fn profiles_key_goes_with_the_payment_to_its_own_service_only() {
    let (own, other) = (StandIn::start(), StandIn::start());
    let home = Home::new();
    let key = home.add_profile("default", &own);
    for shop in [&own, &other] {
        shop.on("/x", asks(&[offer(50_000)])).on("/x", Reply::ok("{}")).on("/x", asks(&[offer(50_000)]));
        shop.on("/x", Reply::ok("{}"));
    }
    let bearer = format!("Bearer {}", key.expose());
    for target in ["/x".to_owned(), format!("{}/x", own.url()), format!("{}/x", other.url())] {
        assert_eq!(run(&home, &["call", &target, "--pay", "--max", "1"]).code, 0);
    }
    let keys = |shop: &StandIn| -> Vec<_> {
        shop.requests().iter().map(|request| request.header("authorization").map(str::to_owned)).collect()
    };
    assert_eq!(keys(&own), vec![Some(bearer); 4]);
    assert_eq!(keys(&other), [None, None]);
}

#[test]
fn without_a_402_nothing_is_needed_to_pay() {
    let shop = StandIn::start();
    shop.on("/x", Reply::ok("{}")).on("/poor", Reply::error(402, "insufficient_credits"));
    let home = Home::new();
    let url = |path: &str| format!("{}{path}", shop.url());
    assert_eq!(home.metering(&["call", &url("/x"), "--pay", "--max", "1"]).success(), "{}");
    let message = run(&home, &["call", &url("/poor"), "--pay", "--max", "1"]).failure(7);
    assert!(message.contains("(insufficient_credits)"), "{message}");
    assert!(!home.profile("default", "pay/journal.jsonl").exists());
    assert_eq!(payments(&shop), [None, None]);
}

#[test]
fn what_cannot_be_called_is_refused_before_sending() {
    let home = Home::new();
    for args in [
        &["call", "http://far.example/", "--pay", "--max", "1"][..],
        &["call", "https://me:pw@far.example/", "--pay", "--max", "1"],
        &["call", "https://far.example/#x", "--pay", "--max", "1"],
        &["call", "https://far.example/", "--pay"],
        &["call", "https://far.example/", "--pay", "--max", "-1"],
        &["call", "https://far.example/", "--pay", "--max", "0"],
        &["call", "https://far.example/", "--max", "1"],
        &["call", "/x", "--pay", "--max", "1", "-H", "X-PAYMENT: x"],
        &["call", "/x", "--pay", "--max", "1", "--token", "USDC"],
        &["mcp", "--pay"],
    ] {
        assert_eq!(run(&home, args).code, 2, "{args:?}");
    }
}
