//! Payments with too few confirmations, and reorganisations.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use metering_tests::answer::Answer;
use metering_tests::chain::Chain;

use crate::market::{Kind, Market, claim, key_of};

fn market(finality: &str) -> Option<Market> {
    Market::with(Chain::setup().manual_mining(), finality, "")
}

#[test]
fn a_payment_counts_when_it_is_deep_enough() {
    for kind in Kind::BOTH {
        let Some(market) = market("3") else { return };
        let customer = market.customer();
        let quote = market.quote(kind, &customer.address());
        let hash = market.pay(kind, &customer, quote.units);
        let waiting = |confirmations: u64| {
            let answer = market.claim(&quote, &hash).expect(409);
            assert_eq!(answer.error(), "payment_unconfirmed");
            let (body, seconds) = (answer.json(), answer.header("retry-after").map(str::to_owned));
            assert_eq!((&body["confirmations"], &body["required"]), (&confirmations.into(), &3.into()), "{body}");
            assert_eq!(body["retry_after_sec"].to_string(), seconds.expect("the response has Retry-After"));
        };
        waiting(0);
        market.chain.mine(1);
        waiting(1);
        market.chain.mine(2);
        let _ = market.claim(&quote, &hash).expect(200);
    }
}

/// A claim of a payment with one confirmation, waiting for more.
fn waiting_claim(market: &Market) -> JoinHandle<Answer> {
    let customer = market.customer();
    let quote = market.quote(Kind::Token, &customer.address());
    let hash = market.pay(Kind::Token, &customer, quote.units);
    market.chain.mine(1);
    let client = market.client();
    let waiting = std::thread::spawn(move || claim(&client, &quote.nonce, &hash));
    std::thread::sleep(Duration::from_millis(300));
    waiting
}

#[test]
fn a_claim_waits_for_the_last_confirmations() {
    let Some(market) = market("3") else { return };
    let waiting = waiting_claim(&market);
    market.chain.mine(2);
    let _ = waiting.join().unwrap().expect(200);
}

#[test]
fn safe_and_finalized_are_the_chains_word() {
    for (finality, behind) in [("'safe'", 2), ("'finalized'", 4)] {
        let setup = Chain::setup().manual_mining().slots_in_an_epoch(2);
        let Some(market) = Market::with(setup, finality, "") else { return };
        let customer = market.customer();
        let quote = market.quote(Kind::Native, &customer.address());
        let hash = market.pay(Kind::Native, &customer, quote.units);
        market.chain.mine(behind);
        assert_eq!(market.claim(&quote, &hash).expect(409).error(), "payment_unconfirmed", "{finality}");
        market.chain.mine(behind);
        let _ = market.claim(&quote, &hash).expect(200);
    }
}

#[test]
fn a_payment_that_is_reorganised_away_buys_nothing() {
    let Some(market) = market("3") else { return };
    let customer = market.customer();
    let quote = market.quote(Kind::Token, &customer.address());
    let hash = market.pay(Kind::Token, &customer, quote.units);
    market.chain.mine(2);
    assert_eq!(market.claim(&quote, &hash).expect(409).error(), "payment_unconfirmed");
    market.chain.reorg(2);
    market.chain.mine(5);
    let refused = market.claim(&quote, &hash);
    assert!(matches!(refused.status, 404 | 409), "{}", refused.text());
    assert_eq!(market.accounts(), 0);
    // A second payment counts.
    let again = market.pay(Kind::Token, &customer, quote.units);
    market.chain.mine(3);
    let _ = market.claim(&quote, &again).expect(200);
    market.site.verify();
}

#[test]
fn a_top_up_waits_for_depth_as_well() {
    let Some(market) = market("2") else { return };
    let customer = market.customer();
    let quote = market.quote(Kind::Token, &customer.address());
    let hash = market.pay(Kind::Token, &customer, quote.units);
    market.chain.mine(2);
    let key = key_of(&market.claim(&quote, &hash).expect(200));
    let hash = market.pay(Kind::Token, &customer, Kind::Token.price());
    market.chain.mine(1);
    assert_eq!(market.top_up(&key, Kind::Token, &hash, None).expect(409).error(), "payment_unconfirmed");
    market.chain.mine(1);
    let _ = market.top_up(&key, Kind::Token, &hash, None).expect(200);
}

#[test]
fn a_claim_that_waits_when_the_server_is_told_to_end_is_answered() {
    let Some(market) = market("3") else { return };
    let mut market = market.patient();
    let waiting = waiting_claim(&market);
    let begun = Instant::now();
    market.server.terminate();
    let answer = waiting.join().unwrap().expect(409);
    assert_eq!(answer.error(), "payment_unconfirmed");
    assert!(answer.header("retry-after").is_some());
    assert_eq!(market.server.wait().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
