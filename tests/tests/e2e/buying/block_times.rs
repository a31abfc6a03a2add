//! With default settings, a customer who pays and sends one request as soon as the payment is mined gets credits, on
//! fast and slow chains.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::site::Site;

use crate::support::shop::{Kind, STARTER, Shop, claim, top_up};

/// How long a claim waits by default.
const CLAIM_WAIT: Duration = Duration::from_secs(45);

/// Sends one claim and one top-up on a chain with this block time, which requires this many confirmations by default.
fn one_request_is_enough(seconds: u64, confirmations: u64) {
    let Some(chain) = Chain::setup().start() else { return };
    let (urls, token) = (format!("'{}'", chain.url()), chain.wallet().deploy_token("USDC", 6));
    let more = "[topup]\nrequire_payer_proof = false\n";
    let shop = Shop::configured(&token, Site::verified(), chain, &urls, "", more);
    let (new_customer, sponsor) = (shop.customer(), shop.customer());
    // Before the restart, give the chain a history at this pace that is as long as the server looks back.
    shop.chain.mine_apart(120, seconds);
    let shop = shop.with_default_claim_wait();
    let account = shop.site.account("1");
    let quote = shop.quote(Kind::Token, &new_customer.address());
    let plans = shop.client().get("/credits/plans").expect(200).json();
    assert_eq!(plans["chains"][0]["confirmations"], confirmations, "{plans}");

    shop.chain.set_block_time(seconds);
    let paid = shop.pay(Kind::Token, &new_customer, quote.units);
    let topped_up = shop.pay(Kind::Token, &sponsor, STARTER);
    let _ = (shop.chain.mined(&paid), shop.chain.mined(&topped_up));
    let started = Instant::now();
    let claiming = {
        let (client, nonce, paid) = (shop.client(), quote.nonce.clone(), paid.clone());
        thread::spawn(move || claim(&client, &nonce, &paid))
    };
    let client = shop.server.client_with(&account.api_key);
    let response = top_up(&client, shop.chain.chain_id(), Kind::Token, &topped_up, None).expect(200);
    assert_eq!(response.member("credit_balance"), "11.5");
    let response = claiming.join().unwrap().expect(200);
    assert_eq!(response.member("credit_balance"), "12.5");
    assert!(started.elapsed() < CLAIM_WAIT, "{:?}", started.elapsed());
}

#[test]
fn claim_succeeds_at_any_block_time() {
    // seconds between blocks, confirmations
    let table = [(1, 30), (2, 15), (12, 2)];
    // All of them wait for blocks, so they wait together.
    thread::scope(|scope| {
        for (seconds, confirmations) in table {
            scope.spawn(move || one_request_is_enough(seconds, confirmations));
        }
    });
}
