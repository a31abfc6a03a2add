//! Wallets that sign in with the published client, to spend what they paid before and to get keys.

use metering_tests::chain::account::Account;
use serde_json::{Value, json};

use super::market::{Call, Market, OFFER, PURSE, Stock, UNITS};
use crate::support::wire::{BASE, BASE_CALL, amount, balance};

/// The kinds of requests that were made.
fn made(call: &Call) -> Vec<&str> {
    let requests = call.requests().into_iter().zip(call.sign_ins());
    let kind = |((has_key, payment), sign_in): ((bool, Option<_>), Option<_>)| match (has_key, payment, sign_in) {
        (false, None, None) => "plain",
        (false, None, Some(_)) => "signed in",
        (false, Some(_), _) => "paid",
        (true, ..) => "with a key",
    };
    requests.map(kind).collect()
}

/// A wallet pays for the first of three calls, and signs in for the others.
#[track_caller]
fn pays_once(market: &Market, stock: Stock) -> (Account, Vec<Call>) {
    let payer = market.payer();
    let calls = market.call(stock, &payer, None, BASE, 3);
    let seen: Vec<_> = calls.iter().map(|call| (call.status(), made(call))).collect();
    let next = (200, vec!["plain", "signed in"]);
    assert_eq!(seen, [(200, vec!["plain", "signed in", "paid"]), next.clone(), next], "{stock:?}: {calls:?}");
    assert_eq!(calls[2].balance(), Some(amount(OFFER - 3 * BASE_CALL).as_str()), "{stock:?}");
    (payer, calls)
}

#[test]
fn wallet_that_paid_signs_in_and_does_not_pay_again() {
    let Some(market) = Market::open() else { return };
    let (lower, _) = pays_once(&market, Stock::FetchSigningLower);
    let (payer, calls) = pays_once(&market, Stock::FetchSigning);
    let next = (200, vec!["plain", "signed in"]);
    assert!(calls[1].receipt().is_null() && calls[1].body().contains("block_number"), "{calls:?}");
    // A client that cannot pay.
    let call = market.call(Stock::FetchSigningOnly, &payer, None, BASE, 1).remove(0);
    assert_eq!((call.status(), made(&call)), next, "{call:?}");
    let stranger = market.chain.wallet().poor_account();
    let call = market.call(Stock::FetchSigningOnly, &stranger, None, BASE, 1).remove(0);
    assert_eq!((call.status(), call.error(), made(&call)), (402, "payment_required".to_owned(), next.1));
    assert!(call.body().contains("has no account here yet"), "{call:?}");
    // Its signature counts once.
    for header in calls.iter().flat_map(Call::sign_ins).flatten() {
        let again = market.server.client().with_header("SIGN-IN-WITH-X", header).get(BASE).expect(402);
        assert_eq!(again.error(), "payment_required");
        assert!(again.text().contains("used before"), "{again:?}");
    }
    let held = [&lower, &payer, &market.recipient].map(|account| market.held_by(account));
    assert_eq!(held, [PURSE - UNITS, PURSE - UNITS, 2 * UNITS]);
}

#[test]
fn wallet_gets_a_key_for_its_credits() {
    let Some(market) = Market::open() else { return };
    let payer = market.payer();
    let call = market.call(Stock::KeyForWallet, &payer, None, BASE, 1).remove(0);
    assert_eq!((call.status(), call.error()), (404, "no_linked_wallet".to_owned()), "{call:?}");
    let paid = market.call(Stock::Fetch, &payer, None, BASE, 1).remove(0);
    assert_eq!(paid.status(), 200, "{paid:?}");
    let call = market.call(Stock::KeyForWallet, &payer, None, BASE, 1).remove(0);
    assert_eq!((call.status(), made(&call)), (201, vec!["signed in"]), "{call:?}");
    let issued: Value = serde_json::from_str(call.body()).unwrap();
    let client = market.server.client_with(issued["key"].as_str().unwrap());
    assert_eq!(client.get(BASE).status, 200);
    assert_eq!(balance(&client), amount(OFFER - 2 * BASE_CALL));
    let account = client.get("/credits/balance").json();
    assert_eq!(account["org_id"], paid.receipt()["extra"]["account"], "{account}");
    // Once, and never without a wallet.
    let header = call.sign_ins()[0].unwrap();
    let again = market.server.client().with_header("SIGN-IN-WITH-X", header);
    let refused = again.post("/keys", &json!({"name": "thief"})).expect(401);
    assert_eq!(refused.error(), "unauthorized");
    assert!(refused.text().contains("used before"), "{refused:?}");
    for header in ["", "e30="] {
        let client = market.server.client().with_header("SIGN-IN-WITH-X", header);
        assert_eq!(client.post("/keys", &json!({"name": "thief"})).expect(401).error(), "unauthorized");
    }
    assert_eq!(market.server.client().post("/keys", &json!({"name": "thief"})).status, 401);
    market.assert_paid(&payer, UNITS);
}
