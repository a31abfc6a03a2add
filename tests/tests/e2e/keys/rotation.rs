//! Rotation by wallet: who may rotate, that a challenge works only once, and what the old key can do afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use metering_tests::chain::Chain;
use serde_json::json;

use super::made;
use crate::support::shop::{Kind, STARTER, Shop, key_of};

#[test]
fn only_the_linked_wallets_signature_of_the_message_rotates() {
    let Some(shop) = Shop::open() else { return };
    let wallet = shop.chain.wallet();
    let (customer, other) = (shop.customer(), shop.customer());
    let key = shop.signed_up(Kind::Token, &customer);
    let _ = shop.signed_up(Kind::Token, &other);
    let address = customer.address();
    let owner = shop.server.client_with(&key);
    let [harmless, manager] = [json!({"name": "helper"}), json!({"name": "manager", "scopes": ["call", "manage"]})]
        .map(|terms| made(&owner, &terms));
    let (nonce, message) = shop.challenge(&address);
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
        let response = shop.verify(address, nonce, signature);
        assert_eq!((response.status, response.error().as_str()), (status, code), "{}", response.text());
    }
    // After four wrong signatures the right one still works, with the address in any case, and only once.
    let rotated = shop.verify(&address.to_uppercase().replace("0X", "0x"), &nonce, &right).expect(200);
    assert_eq!(shop.verify(&address, &nonce, &right).expect(404).error(), "not_found");
    assert_eq!(shop.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(shop.balance(&key_of(&rotated)), "12.5");
    // A thief of the first key may have made more: the response names those that remain.
    let remaining = rotated.json()["remaining_keys"].clone();
    assert_eq!(remaining.as_array().unwrap().len(), 1, "and no key that can manage keys: {remaining}");
    assert_eq!((&remaining[0]["id"], &remaining[0]["name"]), (&json!(harmless.id), &json!("helper")));
    assert_eq!(remaining[0]["scopes"], json!(["call", "read"]));
    assert!(remaining[0]["created_at"].is_string(), "{remaining}");
    let current = |secret: &str| shop.server.client_with(secret).get("/keys/current").status;
    assert_eq!((current(&harmless.secret), current(&manager.secret)), (200, 401));

    let (used_nonce, message) = shop.challenge(&address);
    for _ in 0..5 {
        assert_eq!(shop.verify(&address, &used_nonce, "0xab").expect(400).error(), "invalid_signature");
    }
    let right = wallet.sign_message(&customer, &message);
    assert_eq!(shop.verify(&address, &used_nonce, &right).expect(404).error(), "not_found");
    let unlinked = json!({"address": wallet.poor_account().address()});
    assert_eq!(shop.client().post("/api-key/recover/challenge", &unlinked).expect(404).error(), "no_linked_wallet");
}

#[test]
fn challenge_expires() {
    let Some(shop) = Shop::with(Chain::setup(), "1", "[recovery]\nchallenge_lifetime = '1s'") else { return };
    let customer = shop.customer();
    let _ = shop.signed_up(Kind::Token, &customer);
    let (nonce, message) = shop.challenge(&customer.address());
    let signature = shop.chain.wallet().sign_message(&customer, &message);
    thread::sleep(Duration::from_millis(1_100));
    assert_eq!(shop.verify(&customer.address(), &nonce, &signature).expect(410).error(), "challenge_expired");
}

#[test]
fn twenty_concurrent_rotations_issue_one_key() {
    let Some(shop) = Shop::open() else { return };
    let customer = shop.customer();
    let old_key = shop.signed_up(Kind::Token, &customer);
    let (nonce, message) = shop.challenge(&customer.address());
    let signature = shop.chain.wallet().sign_message(&customer, &message);
    let body = json!({"address": customer.address(), "nonce": nonce, "signature": signature});
    let rotated = Arc::new(AtomicBool::new(false));
    let old_key_callers: Vec<_> = (0..4)
        .map(|_| {
            let (client, rotated) = (shop.server.client_with(&old_key), Arc::clone(&rotated));
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
            let (client, body) = (shop.client(), body.clone());
            let (start, rotated) = (Arc::clone(&start), Arc::clone(&rotated));
            thread::spawn(move || {
                start.wait();
                let response = client.post("/api-key/recover/verify", &body);
                if response.status == 200 {
                    rotated.store(true, Ordering::SeqCst);
                }
                response
            })
        })
        .collect();
    let responses: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
    old_key_callers.into_iter().for_each(|old_key_caller| old_key_caller.join().unwrap());
    let (new, refused): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status == 200);
    assert_eq!((new.len(), refused.len()), (1, 19));
    assert!(refused.iter().all(|response| response.error() == "not_found"));
    let _ = shop.server.client_with(&key_of(new[0])).get("/mpp/ethPrice").expect(200);
    shop.site.verify();
}

#[test]
fn contract_wallet_rotates_by_owner_signature() {
    let Some(shop) = Shop::open() else { return };
    let wallet = shop.chain.wallet();
    let (owner, other) = (shop.customer(), shop.customer());
    let contract = wallet.deploy_contract_wallet(&owner);
    wallet.mint(&shop.token, &contract, 10 * STARTER);
    let quote = shop.quote(Kind::Token, &contract);
    let to = shop.recipient.address();
    let hash = wallet.transfer_by_contract(&owner, &contract, &shop.token, &to, quote.units);
    let key = key_of(&shop.claim(&quote, &hash).expect(200));
    let (nonce, message) = shop.challenge(&contract);
    let wrong = wallet.sign_message(&other, &message);
    assert_eq!(shop.verify(&contract, &nonce, &wrong).expect(400).error(), "invalid_signature");
    let rotated = shop.verify(&contract, &nonce, &wallet.sign_message(&owner, &message)).expect(200);
    assert_eq!(shop.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(shop.balance(&key_of(&rotated)), "12.5");
}
