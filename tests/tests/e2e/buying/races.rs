//! Many concurrent requests, and a server killed in the middle: each payment counts once.

use std::sync::{Arc, Barrier};
use std::thread;

use metering_tests::response::Response;

use crate::support::shop::{Kind, Shop, claim, key_of, top_up};

const CALLERS: usize = 50;

/// Sends the call from many connections at the same moment.
fn all_at_once(call: impl Fn() -> Response + Send + Sync + 'static) -> Vec<Response> {
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
    let Some(shop) = Shop::open() else { return };
    let customer = shop.customer();
    let quote = shop.quote(Kind::Token, &customer.address());
    let hash = shop.pay(Kind::Token, &customer, quote.units);
    let (client, nonce) = (shop.client(), quote.nonce.clone());
    let responses = all_at_once(move || claim(&client, &nonce, &hash));
    let (made, refused): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 200);
    assert_eq!((made.len(), refused.len(), shop.accounts()), (1, CALLERS - 1, 1));
    for response in refused {
        assert!(matches!(response.error().as_str(), "already_claimed" | "tx_already_used"), "{}", response.text());
    }
    assert_eq!(shop.balance(&key_of(made[0])), "12.5");
    shop.site.verify();
}

#[test]
fn fifty_top_ups_with_one_transaction_credit_once() {
    let Some(shop) = Shop::open() else { return };
    let customer = shop.customer();
    let key = shop.signed_up(Kind::Native, &customer);
    let hash = shop.pay(Kind::Native, &customer, Kind::Native.price());
    let (client, chain_id) = (shop.server.client_with(&key), shop.chain.chain_id());
    let responses = all_at_once(move || top_up(&client, chain_id, Kind::Native, &hash, None));
    let first =
        responses.iter().filter(|response| response.status == 200 && response.member("already_credited") == "false");
    assert_eq!(first.count(), 1);
    assert!(responses.iter().all(|response| response.status == 200));
    assert_eq!(shop.balance(&key), "10");
    shop.site.verify();
}

#[test]
fn server_killed_during_claims_credits_each_payment_once() {
    let Some(mut shop) = Shop::open() else { return };
    let paid: Vec<_> = (0..12)
        .map(|_| {
            let customer = shop.customer();
            let quote = shop.quote(Kind::Token, &customer.address());
            let hash = shop.pay(Kind::Token, &customer, quote.units);
            (quote, hash)
        })
        .collect();
    let claims: Vec<_> = paid
        .iter()
        .map(|(quote, hash)| {
            let (client, nonce, hash) = (shop.client(), quote.nonce.clone(), hash.clone());
            let body = serde_json::json!({"signup_nonce": nonce, "tx_hash": hash}).to_string();
            thread::spawn(move || client.try_send("POST", "/signup/pay/claim", Some(body.as_bytes())))
        })
        .collect();
    thread::sleep(std::time::Duration::from_millis(15));
    shop = shop.restart();
    let responses = claims.into_iter().filter(|_| true).map(|claim| claim.join().unwrap()).collect::<Vec<_>>();
    for ((quote, hash), before) in paid.iter().zip(responses) {
        let now = shop.claim(quote, hash);
        match before {
            Ok(response) if response.status == 200 => {
                assert_eq!(now.error(), "already_claimed");
                assert_eq!(shop.balance(&key_of(&response)), "12.5", "a confirmed claim is recorded");
            }
            // The claim may have been committed without a response: then the wallet rotates.
            _ => assert!(now.status == 200 || now.error() == "already_claimed", "{}", now.text()),
        }
    }
    assert_eq!(shop.accounts(), paid.len());
    shop.site.verify();
}
