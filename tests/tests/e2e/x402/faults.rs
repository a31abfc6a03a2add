//! The responses to clients when a payment cannot be executed, or not soon, and the outcome of payments whose server
//! dies.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::Fault;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::market::{Call, Market, OFFER, Stock, Terms, UNITS, chain, own};
use crate::support::wait::{until, until_within};
use crate::support::wire::{BASE, BASE_CALL, amount, balance};

/// How many transactions are pending.
fn pending(chain: &Chain) -> Value {
    chain.rpc("txpool_status", json!([]))["pending"].clone()
}

/// Ends the claims of a server that is gone, as if a minute had passed.
fn end_claims(site: &Site) {
    let database = rusqlite::Connection::open(site.database()).unwrap();
    assert_eq!(
        database.execute("UPDATE payment_authorization SET claimed_until = 0 WHERE state = 'pending'", []),
        Ok(1)
    );
}

/// A shop on a chain that mines only on request.
fn unmined_market() -> Option<Market> {
    let market = Market::on(chain(Chain::setup())?, &Terms::default());
    market.wait_for_offers();
    market.chain.set_automine(false);
    Some(market)
}

/// A client that waits for its payment, whose transaction the server has sent.
fn paying(market: &Market, payer: &Account, api_key: &str) -> JoinHandle<Result<Vec<Call>, String>> {
    let request = market.request(Stock::Fetch, payer, Some(api_key), BASE, 1);
    let client = thread::spawn(move || Call::all(&mut Stock::Fetch.program(), &request));
    until("the server sends its transaction", || pending(&market.chain) == "0x1");
    client
}

#[test]
fn payment_of_a_server_that_died_is_credited_at_its_next_start() {
    let Some(market) = unmined_market() else { return };
    let (payer, account) = (market.payer(), market.site.account("0"));
    let client = paying(&market, &payer, &account.api_key);
    let market = market.restart_after(|chain, site| {
        assert!(client.join().unwrap().is_err(), "its connection is gone");
        chain.mine(1);
        end_claims(site);
    });
    let customer = market.server.client_with(&account.api_key);
    until("the payment is credited", || balance(&customer) == amount(OFFER));
    market.assert_paid(&payer, UNITS);
    assert_eq!(pending(&market.chain), "0x0", "nothing was sent again");
    // The client's next call is paid from the balance.
    market.chain.set_automine(true);
    let calls = market.call(Stock::Fetch, &payer, Some(&account.api_key), BASE, 1);
    assert_eq!((calls[0].status(), calls[0].requests()), (200, vec![(true, None)]), "{calls:?}");
    assert_eq!(balance(&customer), amount(OFFER - BASE_CALL));
    market.assert_paid(&payer, UNITS);
}

#[test]
fn payment_whose_server_died_before_it_was_sent_is_executed_once() {
    let Some(market) = unmined_market() else { return };
    let (payer, account) = (market.payer(), market.site.account("0"));
    let client = paying(&market, &payer, &account.api_key);
    let market = market.restart_after(|chain, site| {
        assert!(client.join().unwrap().is_err(), "its connection is gone");
        // The node has forgotten the transaction.
        let _ = chain.rpc("anvil_dropAllTransactions", json!([]));
        assert_eq!(pending(chain), "0x0");
        chain.set_automine(true);
        end_claims(site);
    });
    let customer = market.server.client_with(&account.api_key);
    // It is sent again 20 s after it was signed.
    until_within(Duration::from_secs(60), "the payment is credited", || balance(&customer) == amount(OFFER));
    market.assert_paid(&payer, UNITS);
}

#[test]
fn unconfirmed_payment_is_pending_and_is_not_paid_again() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let market = Market::on(chain, &Terms { more: "wait = '1s'\n".to_owned(), ..Terms::default() });
    market.wait_for_offers();
    // The payments of one payer wait for each other.
    let (payers, account) = ([market.payer(), market.payer()], market.site.account("0"));
    market.chain.set_automine(false);
    for (stock, payer) in [Stock::Fetch, Stock::Httpx].into_iter().zip(&payers) {
        let call = market.call(stock, payer, Some(&account.api_key), BASE, 1).remove(0);
        assert_eq!((call.status(), call.error()), (503, "settlement_pending".to_owned()), "{call:?}");
        assert_eq!(call.requests(), [(true, None), (true, Some(stock.header()))]);
        let receipt = call.receipt();
        assert_eq!((&receipt["success"], &receipt["errorReason"]), (&json!(false), &json!("settlement_pending")));
        assert!(receipt["transaction"].as_str().is_some_and(|hash| hash.len() == 66), "{receipt}");
        assert!(call.retry_after().is_some() && !call.body().contains("accepts"), "{call:?}");
        market.assert_paid(payer, 0);
    }
    market.chain.mine(1);
    market.chain.set_automine(true);
    let customer = market.server.client_with(&account.api_key);
    until("both payments are credited", || balance(&customer) == amount(2 * OFFER));
    assert_eq!(market.held_by(&market.recipient), 2 * UNITS);
}

#[test]
fn server_whose_chain_is_down_starts_and_makes_offers_later() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let proxy = Proxy::start(&chain);
    proxy.set(Fault::HttpError(503));
    let market = Market::on(chain, &Terms { rpc_url: Some(proxy.url()), ..Terms::default() });
    let (payer, account) = (market.payer(), market.site.account("0"));
    let customer = market.server.client_with(&account.api_key);
    assert_eq!(market.without_key().status, 401);
    let refused = customer.get(BASE).expect(402);
    assert_eq!((refused.error(), refused.header("payment-required")), ("insufficient_credits".to_owned(), None));
    assert_eq!(customer.get("/credits/balance").status, 200);
    proxy.set(Fault::PassThrough);
    market.wait_for_offers();
    let calls = market.call(Stock::Fetch, &payer, Some(&account.api_key), BASE, 1);
    assert_eq!(calls[0].status(), 200, "{calls:?}");
    // Down again: nothing is taken, and nothing more is offered.
    proxy.set(Fault::HttpError(503));
    let calls = market.call(Stock::Fetch, &payer, None, BASE, 1);
    assert_eq!((calls[0].status(), calls[0].error()), (503, "settlement_unavailable".to_owned()), "{calls:?}");
    assert_eq!(calls[0].requests().len(), 2);
    market.assert_paid(&payer, UNITS);
}

#[test]
fn empty_gas_wallet_takes_nothing() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let gas = chain.wallet().poor_account();
    let keys = Site::new();
    let market = Market::on(chain, &Terms { settle: Some(own(&keys, &gas)), ..Terms::default() });
    market.wait_for_offers();
    let (payer, account) = (market.payer(), market.site.account("0"));
    for stock in [Stock::Fetch, Stock::Axios, Stock::FetchV1, Stock::Httpx, Stock::Requests] {
        let call = market.call(stock, &payer, Some(&account.api_key), BASE, 1).remove(0);
        assert_eq!((call.status(), call.error()), (503, "settlement_unavailable".to_owned()), "{stock:?}: {call:?}");
        assert_eq!(call.requests().len(), 2, "{stock:?}");
        assert!(call.retry_after().is_some(), "{stock:?}");
    }
    market.assert_paid(&payer, 0);
    let log = market.server.log();
    assert!(log.contains("the gas wallet cannot execute payments") && log.contains(&gas.address()), "{log}");
    assert_eq!(balance(&market.server.client_with(&account.api_key)), "0");
    // The operator is notified before anyone pays, and the server stays ready for everything else.
    assert!(log.contains("the gas wallet is low: refill it"), "{log}");
    let metrics = market.server.client().get("/metrics").expect(200).text();
    assert!(metrics.contains("metering_gas_wallet_transactions{chain_id=\"84532\"} 0"), "{metrics}");
    assert!(metrics.contains("metering_gas_wallet_wei{chain_id=\"84532\"} 0"), "{metrics}");
    let _ = market.server.client().get("/ready").expect(200);
    // With coins, it works immediately.
    let _ = market.chain.rpc("anvil_setBalance", json!([gas.address(), "0xde0b6b3a7640000"]));
    let calls = market.call(Stock::Fetch, &payer, Some(&account.api_key), BASE, 1);
    assert_eq!(calls[0].status(), 200, "{calls:?}");
    market.assert_paid(&payer, UNITS);
}

#[test]
fn operator_can_require_a_key_and_a_payer_without_tokens_gets_offers_again() {
    let Some(chain) = chain(Chain::setup()) else { return };
    let market = Market::on(chain, &Terms { more: "keyless = false\n".to_owned(), ..Terms::default() });
    let (payer, account) = (market.payer(), market.site.account("0"));
    let customer = market.server.client_with(&account.api_key);
    until("the server makes offers", || customer.get(BASE).expect(402).header("payment-required").is_some());
    let call = market.call(Stock::Fetch, &payer, None, BASE, 1).remove(0);
    assert_eq!((call.status(), call.error(), call.requests().len()), (401, "unauthorized".to_owned(), 1), "{call:?}");
    let call = market.call(Stock::Fetch, &payer, Some(&account.api_key), BASE, 1).remove(0);
    assert_eq!(call.status(), 200, "{call:?}");
    market.assert_paid(&payer, UNITS);
    // A key that is not live is refused before anything is taken.
    let call = market.call(Stock::Fetch, &payer, Some("sk_live_nobody"), BASE, 1).remove(0);
    assert_eq!((call.status(), call.requests().len()), (401, 1), "{call:?}");
    let (poor, account) = (market.chain.wallet().poor_account(), market.site.account("0"));
    let call = market.call(Stock::Fetch, &poor, Some(&account.api_key), BASE, 1).remove(0);
    assert_eq!((call.status(), call.error()), (402, "payment_refused".to_owned()), "{call:?}");
    assert_eq!(call.requests().len(), 2);
    assert_eq!(call.receipt()["success"], false);
    assert_eq!(balance(&market.server.client_with(&account.api_key)), "0");
}
