//! Credits alone, bought with signed payments: the endpoint, with a published client and by hand.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metering_tests::chain::Chain;
use metering_tests::client::Client;
use metering_tests::response::Response;
use serde_json::{Value, json};

use super::market::{CHAIN_ID, Market, OFFER, Stock, Terms, UNITS, chain};
use super::signing::signed;
use crate::support::wait::until;
use crate::support::wire::{amount, balance, retry_after};

/// Both paths of the endpoint.
const PAY: [&str; 2] = ["/credits/pay", "/internal/billing/pay"];

fn pay(client: Client, path: &str, payment: &str) -> Response {
    client.with_header("payment-signature", payment).send("POST", path, None)
}

fn decoded(response: &Response, header: &str) -> Value {
    serde_json::from_slice(&STANDARD.decode(response.header(header).unwrap()).unwrap()).unwrap()
}

#[test]
fn published_clients_top_up() {
    let Some(market) = Market::open() else { return };
    let (payer, account) = (market.payer(), market.site.account("0"));
    let stock = [(Stock::Fetch, PAY[0]), (Stock::FetchV1, PAY[1]), (Stock::Axios, PAY[1])];
    for (count, (stock, path)) in (1..).zip(stock) {
        let call = market.post(stock, &payer, Some(&account.api_key), path);
        assert_eq!((call.status(), call.requests().len()), (200, 2), "{stock:?}: {call:?}");
        let body: Value = serde_json::from_str(call.body()).unwrap();
        assert_eq!((&body["credited"], &body["transaction"]["chain"]), (&json!(0.05), &json!(CHAIN_ID)), "{stock:?}");
        assert_eq!(call.receipt()["transaction"], body["transaction"]["hash"], "{stock:?}");
        assert_eq!(call.receipt()["extra"]["credit_balance"], amount(count * OFFER), "{stock:?}");
    }
    assert_eq!(balance(&market.server.client_with(&account.api_key)), amount(3 * OFFER));
    market.assert_paid(&payer, 3 * UNITS);
}

#[test]
fn a_payment_tops_up_once_and_only_its_account() {
    let Some(market) = Market::open() else { return };
    let (payer, account, other) = (market.payer(), market.site.account("0"), market.site.account("0"));
    let (client, stranger) = (|| market.server.client_with(&account.api_key), || market.server.client());
    let payment = signed(&market, &payer, 1);
    for path in PAY {
        let offered = client().send("POST", path, None).expect(402);
        assert_eq!(offered.error(), "payment_required");
        let amounts = |accepts: &Value, field: &str| {
            accepts.as_array().unwrap().iter().map(|offer| offer[field].clone()).collect::<Vec<_>>()
        };
        assert_eq!(amounts(&offered.json()["accepts"], "maxAmountRequired"), ["50000", "500000"]);
        let header = decoded(&offered, "payment-required");
        assert_eq!(amounts(&header["accepts"], "amount"), ["50000", "500000"]);
        assert!(header["resource"]["url"].as_str().unwrap().ends_with(path), "{header}");
        // Without a key, nothing is offered or taken.
        for response in [stranger().send("POST", path, None), pay(stranger(), path, &payment)] {
            let refused = response.expect(401);
            assert_eq!((refused.error(), refused.header("payment-required")), ("unauthorized".to_owned(), None));
        }
        assert_eq!(pay(client(), path, "bm90IGpzb24=").expect(400).error(), "validation_failed");
    }
    let without_scope = client().post("/keys", &json!({"name": "reader", "scopes": ["call", "read"]})).expect(201);
    let without_scope = without_scope.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(pay(market.server.client_with(&without_scope), PAY[0], &payment).expect(403).error(), "key_scope");
    market.assert_paid(&payer, 0);
    let first = pay(client(), PAY[0], &payment).expect(200);
    let receipt = decoded(&first, "payment-response");
    assert_eq!((&receipt["success"], &receipt["extra"]["account"]), (&json!(true), &json!(account.org_id)));
    assert_eq!(first.header("cache-control"), Some("no-store"));
    for path in PAY {
        let again = pay(client(), path, &payment).expect(200);
        assert_eq!((again.json(), decoded(&again, "payment-response")), (first.json(), receipt.clone()));
        let refused = pay(market.server.client_with(&other.api_key), path, &payment).expect(409);
        assert_eq!((refused.error(), refused.header("payment-required")), ("payment_credited".to_owned(), None));
        assert_eq!(pay(stranger(), path, &payment).expect(401).error(), "unauthorized");
    }
    assert_eq!(balance(&client()), amount(OFFER));
    assert_eq!(balance(&market.server.client_with(&other.api_key)), "0");
    market.assert_paid(&payer, UNITS);
    let listed = client().get("/credits/offers").expect(200).json();
    assert_eq!((&listed["offers"][0]["credits"], &listed["offers"][0]["token_amount"]), (&json!(0.05), &json!("0.05")));
    assert_eq!(listed["chains"][0]["name"], "base-sepolia");
}

#[test]
fn unconfirmed_top_up_is_pending_until_it_is_mined() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let market = Market::on(chain, &Terms { more: "wait = '1s'\n".to_owned(), ..Terms::default() });
    market.wait_for_offers();
    let (payer, account) = (market.payer(), market.site.account("0"));
    let client = || market.server.client_with(&account.api_key);
    let payment = signed(&market, &payer, 1);
    market.chain.set_automine(false);
    for _ in 0..2 {
        let pending = pay(client(), PAY[0], &payment).expect(503);
        assert_eq!((pending.error(), pending.header("payment-required")), ("settlement_pending".to_owned(), None));
        assert!(retry_after(&pending) > 0);
    }
    market.chain.mine(1);
    market.chain.set_automine(true);
    until("the payment is credited", || balance(&client()) == amount(OFFER));
    assert_eq!(pay(client(), PAY[0], &payment).expect(200).member("balance"), amount(OFFER));
    market.assert_paid(&payer, UNITS);
}

#[test]
fn service_without_offers_takes_nothing() {
    let site = metering_tests::site::Site::new();
    let account = site.account("0");
    let server = site.server().start();
    for path in PAY {
        for response in [
            server.client_with(&account.api_key).send("POST", path, None),
            pay(server.client_with(&account.api_key), path, "bm90IGpzb24="),
        ] {
            let refused = response.expect(404);
            assert_eq!(refused.error(), "not_found");
            assert!(refused.member("message").contains("does not accept payments with requests"), "{}", refused.text());
        }
        assert_eq!(server.client().send("POST", path, None).expect(401).error(), "unauthorized");
    }
    assert_eq!(server.client().get("/credits/offers").expect(200).json(), json!({"offers": [], "chains": []}));
}

#[test]
fn new_payments_are_limited_and_known_ones_are_not() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let sections = "[limits]\npayments_per_ip = '2/10m'\n".to_owned();
    let market = Market::on(chain, &Terms { sections, ..Terms::default() });
    market.wait_for_offers();
    let (payer, account) = (market.payer(), market.site.account("0"));
    let client = || market.server.client_with(&account.api_key);
    let payments: Vec<_> = (1..=3).map(|nonce| signed(&market, &payer, nonce)).collect();
    for payment in &payments[..2] {
        let _ = pay(client(), PAY[0], payment).expect(200);
    }
    let metered = || client().with_header("payment-signature", &payments[2]).get(crate::support::wire::BASE);
    for response in [pay(client(), PAY[0], &payments[2]), metered()] {
        let refused = response.expect(429);
        assert_eq!((refused.error(), refused.header("payment-required")), ("rate_limited".to_owned(), None));
        assert!(refused.member("message").contains("Too many payments from your network address"));
        assert!(retry_after(&refused) > 0);
    }
    for payment in &payments[..2] {
        let _ = pay(client(), PAY[0], payment).expect(200);
    }
    market.assert_paid(&payer, 2 * UNITS);
}
