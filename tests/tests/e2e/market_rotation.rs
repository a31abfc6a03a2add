//! Rotation by wallet: who may rotate, that a challenge works only once, and what the old key can do afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use metering_tests::chain::Chain;
use serde_json::json;

use crate::market::{Kind, Market, STARTER, key_of};

#[test]
fn only_the_paying_wallets_signature_over_the_very_message_counts() {
    let Some(market) = Market::open() else { return };
    let wallet = market.chain.wallet();
    let (customer, other) = (market.customer(), market.customer());
    let key = market.signed_up(Kind::Token, &customer);
    let _ = market.signed_up(Kind::Token, &other);
    let address = customer.address();
    let (nonce, message) = market.challenge(&address);
    let right = wallet.sign_message(&customer, &message);
    let upper_half_v = format!("{}1d", &right[..130]);
    // address, nonce, signature, status, code
    let table = [
        (address.as_str(), "unknown", right.as_str(), 404, "not_found"),
        (other.checksummed(), &nonce, &right, 400, "address_mismatch"),
        ("0x12", &nonce, &right, 400, "validation_failed"),
        (&address, &nonce, &wallet.sign_message(&other, &message), 400, "invalid_signature"),
        (&address, &nonce, &wallet.sign_message(&customer, &format!("{message} ")), 400, "invalid_signature"),
        (&address, &nonce, &right[..130], 400, "invalid_signature"),
        (&address, &nonce, &upper_half_v, 400, "invalid_signature"),
    ];
    for (address, nonce, signature, status, code) in table {
        let answer = market.verify(address, nonce, signature);
        assert_eq!((answer.status, answer.error().as_str()), (status, code), "{}", answer.text());
    }
    // After four wrong signatures the right one still works, with the address in any case, and only once.
    let rotated = market.verify(&address.to_uppercase().replace("0X", "0x"), &nonce, &right).expect(200);
    assert_eq!(market.verify(&address, &nonce, &right).expect(404).error(), "not_found");
    assert_eq!(market.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(market.balance(&key_of(&rotated)), "12.5");

    let (spoilt, message) = market.challenge(&address);
    for _ in 0..5 {
        assert_eq!(market.verify(&address, &spoilt, "0xab").expect(400).error(), "invalid_signature");
    }
    let right = wallet.sign_message(&customer, &message);
    assert_eq!(market.verify(&address, &spoilt, &right).expect(404).error(), "not_found");
    let nobody = json!({"address": wallet.poor_account().address()});
    assert_eq!(market.client().post("/api-key/recover/challenge", &nobody).expect(404).error(), "no_linked_wallet");
}

#[test]
fn a_challenge_expires() {
    let Some(market) = Market::with(Chain::setup(), "1", "[recovery]\nchallenge_lifetime = '1s'") else { return };
    let customer = market.customer();
    let _ = market.signed_up(Kind::Token, &customer);
    let (nonce, message) = market.challenge(&customer.address());
    let signature = market.chain.wallet().sign_message(&customer, &message);
    thread::sleep(Duration::from_millis(1_100));
    assert_eq!(market.verify(&customer.address(), &nonce, &signature).expect(410).error(), "challenge_expired");
}

#[test]
fn twenty_answers_make_one_key_and_the_old_one_is_refused_from_then_on() {
    let Some(market) = Market::open() else { return };
    let customer = market.customer();
    let old_key = market.signed_up(Kind::Token, &customer);
    let (nonce, message) = market.challenge(&customer.address());
    let signature = market.chain.wallet().sign_message(&customer, &message);
    let body = json!({"address": customer.address(), "nonce": nonce, "signature": signature});
    let rotated = Arc::new(AtomicBool::new(false));
    let hammers: Vec<_> = (0..4)
        .map(|_| {
            let (client, rotated) = (market.server.client_with(&old_key), Arc::clone(&rotated));
            thread::spawn(move || {
                loop {
                    let known = rotated.load(Ordering::SeqCst);
                    let status = client.get("/mpp/ethPrice").status;
                    // A cap may be reached before the rotation; after it, the old key is unknown.
                    assert!(
                        status == 401 || matches!(status, 200 | 429) && !known,
                        "{status} after the response to the rotation"
                    );
                    if known {
                        return;
                    }
                }
            })
        })
        .collect();
    let start = Arc::new(Barrier::new(20));
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let (client, body) = (market.client(), body.clone());
            let (start, rotated) = (Arc::clone(&start), Arc::clone(&rotated));
            thread::spawn(move || {
                start.wait();
                let answer = client.post("/api-key/recover/verify", &body);
                if answer.status == 200 {
                    rotated.store(true, Ordering::SeqCst);
                }
                answer
            })
        })
        .collect();
    let answers: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
    hammers.into_iter().for_each(|hammer| hammer.join().unwrap());
    let (new, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((new.len(), refused.len()), (1, 19));
    assert!(refused.iter().all(|answer| answer.error() == "not_found"));
    let _ = market.server.client_with(&key_of(new[0])).get("/mpp/ethPrice").expect(200);
    market.site.verify();
}

#[test]
fn a_contract_wallet_rotates_by_its_owners_signature() {
    let Some(market) = Market::open() else { return };
    let wallet = market.chain.wallet();
    let (owner, stranger) = (market.customer(), market.customer());
    let contract = wallet.deploy_contract_wallet(&owner);
    wallet.mint(&market.token, &contract, 10 * STARTER);
    let quote = market.quote(Kind::Token, &contract);
    let to = market.recipient.address();
    let hash = wallet.transfer_by_contract(&owner, &contract, &market.token, &to, quote.units);
    let key = key_of(&market.claim(&quote, &hash).expect(200));
    let (nonce, message) = market.challenge(&contract);
    let wrong = wallet.sign_message(&stranger, &message);
    assert_eq!(market.verify(&contract, &nonce, &wrong).expect(400).error(), "invalid_signature");
    let rotated = market.verify(&contract, &nonce, &wallet.sign_message(&owner, &message)).expect(200);
    assert_eq!(market.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(market.balance(&key_of(&rotated)), "12.5");
}
