//! Rotation over HTTP with signatures by an independent library: what uses up a challenge and what does not, contract
//! wallets, and many rotations at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::Fault;
use metering_tests::response::Response;
use serde_json::json;

use crate::support::shop::{Kind, STARTER, Shop, key_of};
use crate::support::wire::retry_after;

fn challenge(shop: &Shop, address: &str) -> Response {
    shop.client().post("/api-key/recover/challenge", &json!({ "address": address }))
}

/// The nonce of an open challenge, and a valid signature for it.
fn signed_challenge(shop: &Shop, customer: &Account) -> (String, String) {
    let (nonce, message) = shop.challenge(&customer.address());
    (nonce, shop.chain.wallet().sign_message(customer, &message))
}

#[test]
fn only_wrong_signatures_use_up_a_challenge() {
    let Some(mut shop) = Shop::open() else { return };
    let (customer, other) = (shop.customer(), shop.customer());
    let key = shop.signed_up(Kind::Token, &customer);
    let _ = shop.signed_up(Kind::Native, &other);
    let (own, others) = (customer.address(), other.address());
    let (live, right) = signed_challenge(&shop, &customer);
    let (spare, spare_right) = signed_challenge(&shop, &customer);
    shop.restart_with(&[("METERING_RECOVERY__CHALLENGE_LIFETIME", "1s")]);
    let (expired, late) = signed_challenge(&shop, &customer);
    thread::sleep(Duration::from_millis(1_100));
    // address, nonce, signature, status, error
    let table = [
        ("0x12", "unknown", "0xab", 400, "validation_failed"),
        (own.as_str(), "unknown", "0xab", 404, "not_found"),
        (&others, "unknown", "0xab", 404, "not_found"),
        (&others, &expired, "0xab", 400, "address_mismatch"),
        (&others, &live, &right, 400, "address_mismatch"),
        (&own, &expired, "0xab", 410, "challenge_expired"),
        (&own, &expired, &late, 410, "challenge_expired"),
    ];
    // More often than the limit on wrong signatures.
    for _ in 0..6 {
        for (address, nonce, signature, status, error) in table {
            let refused = shop.verify(address, nonce, signature);
            assert_eq!((refused.status, refused.error().as_str()), (status, error), "{address} {nonce} {signature}");
        }
    }
    let missing = shop.client().post("/api-key/recover/verify", &json!({ "address": own })).expect(400).json();
    assert!(missing["fields"]["nonce"].is_string() && missing["fields"]["signature"].is_string(), "{missing}");
    let named = challenge(&shop, "0x12").expect(400).json();
    assert!(named["fields"]["address"].is_string(), "{named}");
    // Five wrong signatures of any kind use up their challenge, but no other.
    let wallet = shop.chain.wallet();
    let forged = wallet.sign_message(&other, "anything");
    for signature in ["0xab", "", &late, &forged, &spare_right] {
        assert_eq!(shop.verify(&own, &live, signature).expect(400).error(), "invalid_signature");
    }
    assert_eq!(shop.verify(&own, &live, &right).expect(404).error(), "not_found");
    assert_eq!(shop.balance(&key), "12.5");
    let rotated = shop.verify(&own, &spare, &spare_right).expect(200);
    assert_eq!(shop.verify(&own, &spare, &spare_right).expect(404).error(), "not_found");

    // A revoked account can no longer rotate, even with an open challenge.
    shop.restart_with(&[]);
    let (nonce, right) = signed_challenge(&shop, &customer);
    let org_id = rotated.json()["org_id"].as_str().unwrap().to_owned();
    let _ = shop.site.admin_json(&["account", "revoke", &org_id, "--yes"]);
    assert_eq!(shop.verify(&own, &nonce, &right).expect(404).error(), "not_found");
    assert_eq!(challenge(&shop, &own).expect(404).error(), "no_linked_wallet");
}

#[test]
fn contract_wallet_is_verified_on_the_paying_chain_only() {
    let Some(chain) = Chain::start() else { return };
    let proxy = Proxy::start(&chain);
    let urls = format!("'{}'", proxy.url());
    let mut shop = Shop::on(chain, &urls, "1", "attempts = 1\nrequest_timeout = '2s'");
    let (owner, customer) = (shop.customer(), shop.customer());
    let contract = shop.chain.wallet().deploy_contract_wallet(&owner);
    shop.chain.wallet().mint(&shop.token, &contract, 10 * STARTER);
    let quote = shop.quote(Kind::Token, &contract);
    let (token, recipient) = (shop.token.clone(), shop.recipient.address());
    let hash = shop.chain.wallet().transfer_by_contract(&owner, &contract, &token, &recipient, quote.units);
    let key = key_of(&shop.claim(&quote, &hash).expect(200));
    let customers_key = shop.signed_up(Kind::Token, &customer);
    // The owner's own address has no account.
    assert_eq!(challenge(&shop, &owner.address()).expect(404).error(), "no_linked_wallet");
    let (nonce, message) = shop.challenge(&contract);
    let right = shop.chain.wallet().sign_message(&owner, &message);

    // While the chain cannot be read, the signature is neither accepted nor refused, and nothing is used up.
    for fault in [Fault::HttpError(500), Fault::Timeout, Fault::WrongChainId(1)] {
        proxy.set(fault.clone());
        for _ in 0..3 {
            let refused = shop.verify(&contract, &nonce, &right).expect(502);
            assert!(matches!(refused.error().as_str(), "rpc_error" | "rpc_chain_mismatch"), "{}", refused.text());
            let _ = retry_after(&refused);
        }
    }
    // A wallet with its own key needs no chain.
    let (customers_nonce, signature) = signed_challenge(&shop, &customer);
    let _ = shop.verify(&customer.address(), &customers_nonce, &signature).expect(200);
    assert_eq!(shop.server.client_with(&customers_key).get("/credits/balance").status, 401);
    proxy.set(Fault::PassThrough);

    // A server without that chain accepts no signature of the contract.
    let without = "[limits]\nsignup_per_ip = 'off'\nrecovery_per_ip = 'off'\nper_wallet = 'off'\n";
    let file = shop.site.write("without.toml", without);
    shop.server = shop.site.server().args(["--config", file.to_str().unwrap()]).start();
    assert_eq!(shop.verify(&contract, &nonce, &right).expect(400).error(), "invalid_signature");
    assert_eq!(shop.balance(&key), "12.5");

    shop.restart_with(&[]);
    let rotated = shop.verify(&contract, &nonce, &right).expect(200);
    assert_eq!(shop.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(shop.balance(&key_of(&rotated)), "12.5");
}

#[test]
fn last_of_many_concurrent_rotations_keeps_its_key() {
    let Some(shop) = Shop::open() else { return };
    let customer = shop.customer();
    let old = shop.signed_up(Kind::Token, &customer);
    let org_id = shop.server.client_with(&old).get("/credits/balance").expect(200).json()["org_id"].clone();
    let _ = shop.site.admin_json(&["account", "limits", org_id.as_str().unwrap(), "--rpm", "0", "--rpd", "0"]);
    let signed_challenges: Vec<_> = (0..20).map(|_| signed_challenge(&shop, &customer)).collect();
    let (start, rotated) = (Arc::new(Barrier::new(signed_challenges.len())), Arc::new(AtomicBool::new(false)));
    let old_key_callers = [(); 4].map(|()| {
        let (client, rotated) = (shop.server.client_with(&old), Arc::clone(&rotated));
        thread::spawn(move || {
            let (mut served, mut late) = (0, 0);
            while late < 20 {
                let known = rotated.load(Ordering::SeqCst);
                let status = client.get("/mpp/ethPrice").status;
                assert!(status == 401 || status == 200 && !known, "{status} after the response to the rotation");
                served += u64::from(status == 200);
                late += u64::from(known);
            }
            served
        })
    });
    let callers = signed_challenges.into_iter().map(|(nonce, signature)| {
        let body = json!({ "address": customer.address(), "nonce": nonce, "signature": signature });
        let (client, start, rotated) = (shop.client(), Arc::clone(&start), Arc::clone(&rotated));
        thread::spawn(move || {
            start.wait();
            let response = client.post("/api-key/recover/verify", &body).expect(200);
            rotated.store(true, Ordering::SeqCst);
            key_of(&response)
        })
    });
    let callers: Vec<_> = callers.collect();
    let keys: BTreeSet<String> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
    let served: u64 = old_key_callers.into_iter().map(|old_key_caller| old_key_caller.join().unwrap()).sum();
    assert_eq!(keys.len(), 20);
    let live: Vec<_> =
        keys.iter().filter(|key| shop.server.client_with(key).get("/credits/balance").status == 200).collect();
    let [live] = live.as_slice() else { panic!("{} keys are live", live.len()) };
    let summary = shop.server.client_with(live).get("/credits/usage/summary").expect(200).json();
    assert_eq!(summary["totals"]["usage_events"], served, "exactly the served requests were charged");
}
