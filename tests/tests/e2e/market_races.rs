//! Many concurrent requests, and a server killed in the middle: each payment counts once.

use std::sync::{Arc, Barrier};
use std::thread;

use metering_tests::answer::Answer;

use crate::market::{Kind, Market, claim, key_of, top_up};

const CALLERS: usize = 50;

/// Sends the call from many connections at the same moment.
fn all_at_once(call: impl Fn() -> Answer + Send + Sync + 'static) -> Vec<Answer> {
    let (call, start) = (Arc::new(call), Arc::new(Barrier::new(CALLERS)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (call, start) = (Arc::clone(&call), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                call()
            })
        })
        .collect();
    callers.into_iter().map(|caller| caller.join().unwrap()).collect()
}

#[test]
fn fifty_claims_of_one_quote_make_one_account() {
    let Some(market) = Market::open() else { return };
    let customer = market.customer();
    let quote = market.quote(Kind::Token, &customer.address());
    let hash = market.pay(Kind::Token, &customer, quote.units);
    let (client, nonce) = (market.client(), quote.nonce.clone());
    let answers = all_at_once(move || claim(&client, &nonce, &hash));
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((made.len(), refused.len(), market.accounts()), (1, CALLERS - 1, 1));
    for answer in refused {
        assert!(matches!(answer.error().as_str(), "already_claimed" | "tx_already_used"), "{}", answer.text());
    }
    assert_eq!(market.balance(&key_of(made[0])), "12.5");
    market.site.verify();
}

#[test]
fn fifty_top_ups_with_one_transaction_credit_once() {
    let Some(market) = Market::open() else { return };
    let customer = market.customer();
    let key = market.signed_up(Kind::Native, &customer);
    let hash = market.pay(Kind::Native, &customer, Kind::Native.price());
    let (client, chain_id) = (market.server.client_with(&key), market.chain.chain_id());
    let answers = all_at_once(move || top_up(&client, chain_id, Kind::Native, &hash, None));
    let first = answers.iter().filter(|answer| answer.status == 200 && answer.member("already_credited") == "false");
    assert_eq!(first.count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(market.balance(&key), "10");
    market.site.verify();
}

#[test]
fn a_server_that_is_killed_while_it_claims_loses_and_doubles_nothing() {
    let Some(mut market) = Market::open() else { return };
    let paid: Vec<_> = (0..12)
        .map(|_| {
            let customer = market.customer();
            let quote = market.quote(Kind::Token, &customer.address());
            let hash = market.pay(Kind::Token, &customer, quote.units);
            (quote, hash)
        })
        .collect();
    let claims: Vec<_> = paid
        .iter()
        .map(|(quote, hash)| {
            let (client, nonce, hash) = (market.client(), quote.nonce.clone(), hash.clone());
            let body = serde_json::json!({"signup_nonce": nonce, "tx_hash": hash}).to_string();
            thread::spawn(move || client.try_send("POST", "/signup/pay/claim", Some(body.as_bytes())))
        })
        .collect();
    thread::sleep(std::time::Duration::from_millis(15));
    market = market.restart();
    let answered = claims.into_iter().filter(|_| true).map(|claim| claim.join().unwrap()).collect::<Vec<_>>();
    for ((quote, hash), before) in paid.iter().zip(answered) {
        let now = market.claim(quote, hash);
        match before {
            Ok(answer) if answer.status == 200 => {
                assert_eq!(now.error(), "already_claimed");
                assert_eq!(market.balance(&key_of(&answer)), "12.5", "a confirmed claim is recorded");
            }
            // The claim may have been committed without a response: then the wallet rotates.
            _ => assert!(now.status == 200 || now.error() == "already_claimed", "{}", now.text()),
        }
    }
    assert_eq!(market.accounts(), paid.len());
    market.site.verify();
}
