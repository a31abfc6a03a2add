//! With default settings, a customer who pays and sends one request as soon as the payment is mined gets credits,
//! however fast or slow the chain is.

use std::thread;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::site::Site;

use crate::market::{Kind, Market, STARTER, claim, top_up};

/// How long a claim waits by default.
const CLAIM_WAIT: Duration = Duration::from_secs(45);

/// Sends one claim and one top-up on a chain with this block time, which requires this many confirmations by default.
fn one_request_is_enough(seconds: u64, confirmations: u64) {
    let Some(chain) = Chain::setup().start() else { return };
    let (urls, token) = (format!("'{}'", chain.url()), chain.wallet().deploy_token("USDC", 6));
    let more = "[topup]\nrequire_payer_proof = false\n";
    let market = Market::configured(&token, Site::new(), chain, &urls, "", more);
    let (newcomer, sponsor) = (market.customer(), market.customer());
    // Before the restart, give the chain a history at this pace that is as long as the server looks back.
    market.chain.mine_apart(120, seconds);
    let market = market.patient();
    let account = market.site.account("1");
    let quote = market.quote(Kind::Token, &newcomer.address());
    let plans = market.client().get("/credits/plans").expect(200).json();
    assert_eq!(plans["chains"][0]["confirmations"], confirmations, "{plans}");

    market.chain.set_block_time(seconds);
    let paid = market.pay(Kind::Token, &newcomer, quote.units);
    let topped_up = market.pay(Kind::Token, &sponsor, STARTER);
    let _ = (market.chain.mined(&paid), market.chain.mined(&topped_up));
    let begun = Instant::now();
    let claiming = {
        let (client, nonce, paid) = (market.client(), quote.nonce.clone(), paid.clone());
        thread::spawn(move || claim(&client, &nonce, &paid))
    };
    let client = market.server.client_with(&account.api_key);
    let answer = top_up(&client, market.chain.chain_id(), Kind::Token, &topped_up, None).expect(200);
    assert_eq!(answer.member("credit_balance"), "11.5");
    let answer = claiming.join().unwrap().expect(200);
    assert_eq!(answer.member("credit_balance"), "12.5");
    assert!(begun.elapsed() < CLAIM_WAIT, "{:?}", begun.elapsed());
    market.site.verify();
}

#[test]
fn a_block_every_second() {
    one_request_is_enough(1, 30);
}

#[test]
fn a_block_every_two_seconds() {
    one_request_is_enough(2, 15);
}

#[test]
fn a_block_every_twelve_seconds() {
    one_request_is_enough(12, 2);
}
