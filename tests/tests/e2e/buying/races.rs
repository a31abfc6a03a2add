//! A server killed in the middle of many claims: each payment counts once.

use std::thread;

use crate::support::shop::{Kind, Shop, key_of};

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
}
