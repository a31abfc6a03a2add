//! How agents, directories and pages of other origins find what can be paid, and the size of what they send.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::wallet::authorizations::TransferAuthorization;
use metering_tests::response::Response;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::market::{Market, Terms, chain};
use crate::pages::play;
use crate::support::wire::{BASE, BASE_CALL, CREDIT, amount, balance};

const PAGE: &str = "https://app.example";
const SECRET: &str = "correct horse battery";
/// The headers of requests that published clients send from a page.
const SENT: &str = "payment-signature,x-payment,sign-in-with-x,payment-authorization,accept-payment,access-control-expose-headers,payment-retry";

/// The JSON in a header of a response.
#[track_caller]
pub(crate) fn decoded(response: &Response, name: &str) -> Value {
    let header = response.header(name).unwrap_or_else(|| panic!("no {name}: {:?}", response.headers));
    serde_json::from_slice(&STANDARD.decode(header).unwrap()).unwrap()
}

/// A market with these lines before all sections of its configuration.
pub(crate) fn open(first: &str) -> Option<Market> {
    let market = Market::on(chain(Chain::setup())?, &Terms { first: first.to_owned(), ..Terms::default() });
    market.wait_for_offers();
    Some(market)
}

/// The payment of an offer, as a client of version 2 sends it, with extensions of this size.
pub(crate) fn payment(market: &Market, payer: &Account, offered: &Value, extra: usize) -> String {
    let (offer, nonce) = (&offered["accepts"][0], format!("0x{:064x}", 7));
    let transfer = TransferAuthorization {
        from: payer.address(),
        to: offer["payTo"].as_str().unwrap().to_owned(),
        value: offer["amount"].as_str().unwrap().parse().unwrap(),
        valid_after: 0,
        valid_before: 4_000_000_000,
        nonce: nonce.clone(),
    };
    let signature = market.chain.wallet().sign_transfer(payer, 84_532, &transfer);
    let authorization = json!({"from": transfer.from, "to": transfer.to, "value": transfer.value.to_string(),
        "validAfter": "0", "validBefore": "4000000000", "nonce": nonce});
    let mut extensions = offered["extensions"].clone();
    extensions["more"] = json!({"info": {"text": "x".repeat(extra)}, "schema": {}});
    let payload = json!({"x402Version": 2, "accepted": offer, "resource": offered["resource"], "extensions": extensions,
        "payload": {"authorization": authorization, "signature": signature}});
    STANDARD.encode(payload.to_string())
}

#[test]
fn a_service_without_offers_sells_nothing() {
    let site = Site::new();
    let server = site.server().start();
    for path in ["/.well-known/x402", "/.well-known/x402.json"] {
        let response = server.client().get(path).expect(404);
        assert_eq!((response.error(), response.header("cache-control")), ("not_found".to_owned(), Some("no-store")));
    }
    let document = server.client().get("/openapi.json").expect(200).json();
    assert!(!document.to_string().contains("x-payment-info"));
}

#[test]
fn routes_are_described_wherever_agents_look() {
    let Some(market) = open("") else { return };
    let client = market.server.client();
    let offered = decoded(&client.get(BASE).expect(402), "payment-required");
    let url = format!("http://{}{BASE}", market.server.address());
    assert_eq!(offered["resource"]["url"], url);
    assert_eq!(offered["extensions"]["bazaar"]["info"]["input"]["method"], "GET");

    let manifest = client.get("/.well-known/x402").expect(200);
    let same = client.get("/.well-known/x402.json").expect(200);
    assert_eq!((manifest.body.as_slice(), manifest.header("etag")), (same.body.as_slice(), same.header("etag")));
    assert_eq!(manifest.header("cache-control"), Some("public, max-age=60"));
    assert_eq!(manifest.header("content-type"), Some("application/json"));
    let etag = manifest.header("etag").unwrap().to_owned();
    let _ = client.clone().with_header("If-None-Match", &etag).get("/.well-known/x402").expect(304);
    let document = manifest.json();
    assert!(document["resources"].as_array().unwrap().contains(&json!(url)), "{document}");
    let items = document["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["resource"]["url"] == url).unwrap();
    assert_eq!((&item["resource"], &item["accepts"]), (&offered["resource"], &offered["accepts"]));
    let tool = items.iter().find(|item| item["type"] == "mcp").unwrap();
    assert_eq!(tool["resource"]["url"], format!("http://{}/mcp", market.server.address()));
    assert!(tool["input"]["inputSchema"]["properties"].is_object() && !tool["accepts"][0].is_null(), "{tool}");
    let keys = items.iter().find(|item| item["requires"] == json!(["sign-in-with-x"])).unwrap();
    assert_eq!(keys["resource"]["url"], format!("http://{}/keys", market.server.address()));
    // Each URL to try is one that is sold.
    for resource in document["resources"].as_array().unwrap() {
        let path = resource.as_str().unwrap().split_once(&market.server.address().to_string()).unwrap().1;
        let refused = client.get(path);
        assert_eq!((refused.status, refused.header("payment-required").is_some()), (402, true), "{path}");
    }

    let document = client.get("/openapi.json").expect(200).json();
    let info = &document["paths"][BASE]["get"]["x-payment-info"];
    assert_eq!(info["offers"][0]["amount"], offered["accepts"][0]["amount"]);
    assert_eq!(info["price"], json!({"mode": "fixed", "currency": "USD", "amount": "0.05"}));
    assert!(document["x-service-info"]["docs"].is_object());
}

#[test]
fn a_page_of_another_origin_can_read_offers_and_pay() {
    let Some(market) = open(&format!("http.allowed_origins = ['{PAGE}']\n")) else { return };
    let page = market.server.client().with_header("Origin", PAGE);
    let preflight = page
        .clone()
        .with_header("Access-Control-Request-Method", "GET")
        .with_header("Access-Control-Request-Headers", SENT)
        .send("OPTIONS", BASE, None)
        .expect(200);
    assert_eq!(preflight.header("access-control-allow-origin"), Some(PAGE));
    assert_eq!(preflight.header("access-control-allow-headers"), Some(SENT));
    let refused = page.get(BASE).expect(402);
    assert_eq!(refused.header("access-control-expose-headers"), Some("*"));
    let payer = market.payer();
    // It can be large.
    let payment = payment(&market, &payer, &decoded(&refused, "payment-required"), 9_000);
    assert!((14_000..16_384).contains(&payment.len()), "{}", payment.len());
    let paid = page.with_header("Payment-Signature", &payment).get(BASE).expect(200);
    assert_eq!(paid.header("access-control-expose-headers"), Some("*"));
    assert_eq!(decoded(&paid, "payment-response")["success"], true);
    market.assert_paid(&payer, 50_000);
}

#[test]
fn a_browser_lets_a_page_of_another_origin_read_offers() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let elsewhere = Site::new();
    let elsewhere = elsewhere.server().start();
    let page = format!("http://{}", elsewhere.address());
    let terms = Terms { first: format!("http.allowed_origins = ['{page}']\n"), ..Terms::default() };
    let market = Market::on(chain, &terms);
    market.wait_for_offers();
    play("payableFromElsewhere", &market.server, json!({"page": page}));
}

#[test]
fn a_resolver_passes_offers_and_payments_on() {
    let Some(market) = open(&format!("billing.internal_secret = '{SECRET}'\n")) else { return };
    let (payer, account) = (market.payer(), market.site.account("0"));
    let resolver = market.server.client_with(&account.api_key).with_header("X-BDS-Internal-Billing-Secret", SECRET);
    let request = json!({"path": BASE, "method": "GET"});
    let refused = resolver.post("/internal/billing/deduct", &request).expect(402);
    let offered = decoded(&refused, "payment-required");
    assert_eq!(
        (refused.error(), &offered["error"]),
        ("insufficient_credits".to_owned(), &"insufficient_credits".into())
    );
    assert!(refused.json()["plans"].is_array() && refused.json()["accepts"].is_array());
    assert_eq!(offered["resource"]["url"], format!("http://{}{BASE}", market.server.address()));
    let payment = payment(&market, &payer, &offered, 0);
    let paying = resolver.clone().with_header("Payment-Signature", &payment);
    let charged = paying.post("/internal/billing/deduct", &request).expect(200);
    let receipt = decoded(&charged, "payment-response");
    assert_eq!(receipt["extra"]["account"], account.org_id);
    assert_eq!(receipt["extra"]["credit_balance"], amount(CREDIT / 20 - BASE_CALL));
    // The rest covers a hold; a hold beyond it is offered.
    let held = json!({"path": BASE, "method": "GET", "amount": "0.01"});
    let _ = resolver.post("/internal/billing/hold", &held).expect(200);
    let beyond = json!({"path": BASE, "method": "GET", "amount": "0.3"});
    let refused = resolver.post("/internal/billing/hold", &beyond).expect(402);
    assert_eq!(decoded(&refused, "payment-required")["accepts"][0]["amount"], "500000");
    let left = balance(&market.server.client_with(&account.api_key));
    assert_eq!(left, amount(CREDIT / 20 - BASE_CALL - CREDIT / 100));
    market.assert_paid(&payer, 50_000);
}
