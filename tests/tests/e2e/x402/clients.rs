//! Each published client pays with a key, without one, and for a stream.

use metering_tests::chain::Chain;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::market::{Call, Market, OFFER, PURSE, Stock, Terms, UNITS, chain};
use crate::support::wire::{BASE, BASE_CALL, CREDIT, STREAM, amount, balance};

/// Checks a call that was paid: two requests, and a receipt that names the account and its balance.
#[track_caller]
fn assert_paid(stock: Stock, call: &Call, with_key: bool, left: &str) -> String {
    assert_eq!(call.status(), 200, "{stock:?}: {call:?}");
    assert_eq!(call.requests(), [(with_key, None), (with_key, Some(stock.header()))], "{stock:?}");
    let receipt = call.receipt();
    let network = if stock == Stock::FetchV1 { "base-sepolia" } else { "eip155:84532" };
    assert_eq!((&receipt["success"], &receipt["network"]), (&true.into(), &network.into()), "{stock:?}: {receipt}");
    assert_eq!(receipt["extra"]["credit_balance"], left, "{stock:?}: {receipt}");
    assert_eq!(call.balance(), Some(left), "{stock:?}");
    receipt["extra"]["account"].as_str().unwrap().to_owned()
}

/// With an empty balance the client pays once; the remaining credits pay for its next calls.
fn pays_with_a_key(market: &Market, stock: Stock) {
    let (payer, account) = (market.payer(), market.site.account("0"));
    let calls = market.call(stock, &payer, Some(&account.api_key), BASE, 2);
    let credited = assert_paid(stock, &calls[0], true, &amount(OFFER - BASE_CALL));
    assert_eq!(credited, account.org_id);
    assert_eq!((calls[1].status(), calls[1].requests()), (200, vec![(true, None)]), "{calls:?}");
    assert!(calls[1].receipt().is_null() && calls[0].body().contains("block_number"), "{calls:?}");
    assert_eq!(market.held_by(&payer), PURSE - UNITS, "{stock:?}");
    let client = market.server.client_with(&account.api_key);
    assert_eq!(balance(&client), amount(OFFER - 2 * BASE_CALL));
}

/// Without a key each call is paid, and the rest is on one account: that of the wallet.
fn pays_without_a_key(market: &Market, stock: Stock) {
    let payer = market.payer();
    let calls = market.call(stock, &payer, None, BASE, 2);
    let first = assert_paid(stock, &calls[0], false, &amount(OFFER - BASE_CALL));
    let second = assert_paid(stock, &calls[1], false, &amount(2 * (OFFER - BASE_CALL)));
    assert_eq!(first, second);
    assert_eq!(market.held_by(&payer), PURSE - 2 * UNITS, "{stock:?}");
    let listed = market.site.admin_json(&["account", "list"]);
    let accounts = listed["accounts"].as_array().or(listed.as_array()).unwrap();
    assert_eq!(accounts.len(), 1, "{listed}");
    assert!(listed.to_string().contains(&payer.address()), "{listed}");
}

/// A stream is paid as any call is, and arrives.
fn pays_for_a_stream(market: &Market, stock: Stock) {
    let (payer, account) = (market.payer(), market.site.account("0"));
    let calls = market.call(stock, &payer, Some(&account.api_key), STREAM, 1);
    let credited = assert_paid(stock, &calls[0], true, &amount(OFFER - CREDIT / 100));
    assert_eq!(credited, account.org_id);
    assert!(calls[0].body().contains("event: block"), "{calls:?}");
    assert_eq!(market.held_by(&payer), PURSE - UNITS, "{stock:?}");
}

#[test]
fn payment_with_an_id_that_is_sent_again_gets_the_same_response() {
    let Some(market) = Market::open() else { return };
    let account = market.site.account("0");
    for key in [None, Some(account.api_key.as_str())] {
        let payer = market.payer();
        let calls = market.call(Stock::FetchIdentified, &payer, key, BASE, 2);
        let [first, again] = calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!((first.status(), first.is_replayed(), first.requests().len()), (200, false, 2), "{calls:?}");
        assert_eq!((again.status(), again.is_replayed(), again.requests().len()), (200, true, 1), "{calls:?}");
        assert_eq!((again.body(), again.receipt()), (first.body(), first.receipt()));
        assert_eq!((again.balance(), market.held_by(&payer)), (first.balance(), PURSE - UNITS));
    }
    assert_eq!(balance(&market.server.client_with(&account.api_key)), amount(OFFER - BASE_CALL));
}

#[test]
fn offers_and_receipts_are_signed_as_published_clients_verify_them() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let (keys, signer) = (Site::new(), chain.wallet().poor_account());
    let file = keys.write("receipt.key", signer.private_key());
    let more = format!("receipt_key_file = '{}'\n", file.display());
    let market = Market::on(chain, &Terms { more, ..Terms::default() });
    market.wait_for_offers();
    let call = market.call(Stock::FetchReceipts, &market.payer(), None, BASE, 1).remove(0);
    assert_eq!(call.status(), 200, "{call:?}");
    let found: Value = serde_json::from_str(call.body()).unwrap();
    let signer = signer.checksummed();
    // Of both offers, and of the receipt.
    assert_eq!(found, json!({"signers": [signer, signer, signer], "offered": true, "matches": true}), "{call:?}");
}

fn pays(stock: Stock) {
    let Some(market) = Market::open() else { return };
    // First, since it checks that there is no other account.
    pays_without_a_key(&market, stock);
    pays_with_a_key(&market, stock);
    pays_for_a_stream(&market, stock);
}

#[test]
fn fetch_pays() {
    pays(Stock::Fetch);
}

#[test]
fn axios_pays() {
    pays(Stock::Axios);
}

#[test]
fn fetch_v1_pays() {
    pays(Stock::FetchV1);
}

#[test]
fn httpx_pays() {
    pays(Stock::Httpx);
}

#[test]
fn requests_pays() {
    pays(Stock::Requests);
}
