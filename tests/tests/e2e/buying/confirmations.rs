//! Payments with too few confirmations, and reorganisations.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use metering_tests::chain::Chain;
use metering_tests::response::Response;

use crate::support::shop::{Kind, Shop, claim};

fn shop(finality: &str) -> Option<Shop> {
    Shop::with(Chain::setup().manual_mining(), finality, "")
}

#[test]
fn payment_is_credited_once_confirmed() {
    for kind in Kind::BOTH {
        let Some(shop) = shop("3") else { return };
        let customer = shop.customer();
        let quote = shop.quote(kind, &customer.address());
        let hash = shop.pay(kind, &customer, quote.units);
        let waiting = |confirmations: u64| {
            let response = shop.claim(&quote, &hash).expect(409);
            assert_eq!(response.error(), "payment_unconfirmed");
            let (body, seconds) = (response.json(), response.header("retry-after").map(str::to_owned));
            assert_eq!((&body["confirmations"], &body["required"]), (&confirmations.into(), &3.into()), "{body}");
            assert_eq!(body["retry_after_sec"].to_string(), seconds.expect("the response has Retry-After"));
        };
        waiting(0);
        shop.chain.mine(1);
        waiting(1);
        shop.chain.mine(2);
        let _ = shop.claim(&quote, &hash).expect(200);
    }
}

/// A claim of a payment with one confirmation, waiting for more.
fn waiting_claim(shop: &Shop) -> JoinHandle<Response> {
    let customer = shop.customer();
    let quote = shop.quote(Kind::Token, &customer.address());
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    shop.chain.mine(1);
    let client = shop.client();
    let waiting = std::thread::spawn(move || claim(&client, &quote.nonce, &hash));
    std::thread::sleep(Duration::from_secs(1));
    waiting
}

#[test]
fn finality_can_follow_safe_and_finalized_blocks() {
    for (finality, behind) in [("'safe'", 2), ("'finalized'", 4)] {
        let setup = Chain::setup().manual_mining().slots_in_an_epoch(2);
        let Some(shop) = Shop::with(setup, finality, "") else { return };
        let customer = shop.customer();
        let quote = shop.quote(Kind::Native, &customer.address());
        let hash = shop.pay(Kind::Native, &customer, quote.units);
        shop.chain.mine(behind);
        assert_eq!(shop.claim(&quote, &hash).expect(409).error(), "payment_unconfirmed", "{finality}");
        shop.chain.mine(behind);
        let _ = shop.claim(&quote, &hash).expect(200);
    }
}

#[test]
fn waiting_claim_gets_a_response_at_shutdown() {
    let Some(shop) = shop("3") else { return };
    let mut shop = shop.with_default_claim_wait();
    let waiting = waiting_claim(&shop);
    let started = Instant::now();
    shop.server.terminate();
    let response = waiting.join().unwrap().expect(409);
    assert_eq!(response.error(), "payment_unconfirmed");
    assert!(response.header("retry-after").is_some());
    assert_eq!(shop.server.wait().code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}
