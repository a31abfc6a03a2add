//! Rotation over HTTP with signatures by an independent library: every form of address and signature, what uses up a
//! challenge and what does not, contract wallets, and many rotations at once.

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
use serde_json::{Value, json};

use crate::support::shop::{Kind, STARTER, Shop, key_of};
use crate::support::wire::retry_after;

/// The order of the curve's group (SEC 2, secp256k1).
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

fn challenge(shop: &Shop, address: &str) -> Response {
    shop.client().post("/api-key/recover/challenge", &json!({ "address": address }))
}

/// The nonce of an open challenge, and a valid signature for it.
fn signed_challenge(shop: &Shop, customer: &Account) -> (String, String) {
    let (nonce, message) = shop.challenge(&customer.address());
    (nonce, shop.chain.wallet().sign_message(customer, &message))
}

/// The same signature with the other s, which is also mathematically valid on the curve (EIP-2).
fn with_other_s(signature: &str) -> String {
    let bytes = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let (order, s) = (bytes(ORDER), bytes(&signature[66..130]));
    let (mut negated, mut borrow) = (vec![0; 32], 0);
    for at in (0..32).rev() {
        let difference = i32::from(order[at]) - i32::from(s[at]) - borrow;
        borrow = i32::from(difference < 0);
        negated[at] = u8::try_from(difference.rem_euclid(256)).unwrap();
    }
    let negated: String = negated.iter().map(|byte| format!("{byte:02x}")).collect();
    let v = if signature.ends_with("1b") { "1c" } else { "1b" };
    format!("{}{negated}{v}", &signature[..66])
}

/// Changes a valid signature: `0x`, 64 digits of r, 64 of s, and v, which is `1b` or `1c`.
type Change = fn(&str) -> String;

#[test]
fn signature_must_be_65_bytes_of_the_wallet() {
    let Some(shop) = Shop::open() else { return };
    let customer = shop.customer();
    let mut key = shop.signed_up(Kind::Token, &customer);
    let address = customer.address();
    let wrong: [(&str, Change); 19] = [
        ("nothing", |_| String::new()),
        ("no digits", |_| "0x".to_owned()),
        ("no prefix", |right| right[2..].to_owned()),
        ("another prefix", |right| right.replace("0x", "0X")),
        ("an odd number of digits", |right| right[..131].to_owned()),
        ("not hex", |right| format!("{}zz", &right[..130])),
        ("a space", |right| format!("{right} ")),
        ("64 bytes", |right| right[..130].to_owned()),
        ("66 bytes", |right| format!("{right}00")),
        ("v of 2", |right| format!("{}02", &right[..130])),
        ("v of 26", |right| format!("{}1a", &right[..130])),
        ("v of 29", |right| format!("{}1d", &right[..130])),
        ("v with a chain's id (EIP-155)", |right| format!("{}25", &right[..130])),
        ("the other v", |right| format!("{}{}", &right[..130], if right.ends_with("1b") { "1c" } else { "1b" })),
        ("the other half of s", with_other_s),
        ("zeros", |_| format!("0x{}", "00".repeat(65))),
        ("r of zero", |right| format!("0x{}{}", "00".repeat(32), &right[66..])),
        ("s of the group's order", |right| format!("{}{ORDER}1b", &right[..66])),
        ("10,000 bytes", |_| format!("0x{}", "ab".repeat(10_000))),
    ];
    for (what, change) in wrong {
        let (nonce, right) = signed_challenge(&shop, &customer);
        let refused = shop.verify(&address, &nonce, &change(&right));
        assert_eq!((refused.status, refused.error().as_str()), (400, "invalid_signature"), "{what}");
        assert_eq!(shop.server.client_with(&key).get("/credits/balance").status, 200, "{what}");
    }
    let right: [(&str, Change); 3] = [
        ("as wallets make it", str::to_owned),
        ("v of 0 or 1", |right| format!("{}{}", &right[..130], if right.ends_with("1b") { "00" } else { "01" })),
        ("upper case", |right| format!("0x{}", right[2..].to_uppercase())),
    ];
    for (what, change) in right {
        let (nonce, right) = signed_challenge(&shop, &customer);
        let rotated = shop.verify(&address, &nonce, &change(&right));
        assert_eq!(rotated.status, 200, "{what}: {}", rotated.text());
        assert_eq!(shop.server.client_with(&key).get("/credits/balance").status, 401, "{what}");
        key = key_of(&rotated);
        assert_eq!(shop.balance(&key), "12.5", "{what}");
    }
}

#[test]
fn address_case_is_free_but_checksums_must_match() {
    let Some(shop) = Shop::open() else { return };
    let customer = shop.customer();
    let _ = shop.signed_up(Kind::Token, &customer);
    let checksummed = customer.checksummed().to_owned();
    let upper = format!("0x{}", customer.address()[2..].to_uppercase());
    for address in [customer.address(), checksummed.clone(), upper] {
        let (nonce, message) = shop.challenge(&address);
        assert!(message.contains(&checksummed), "{message}");
        let signature = shop.chain.wallet().sign_message(&customer, &message);
        let _ = shop.verify(&address, &nonce, &signature).expect(200);
    }
    let (nonce, signature) = signed_challenge(&shop, &customer);
    // The first letter in the other case, as in a typo.
    let typo: String = {
        let at = checksummed.char_indices().skip(2).find(|(_, digit)| digit.is_alphabetic()).unwrap().0;
        let (before, rest) = checksummed.split_at(at);
        let letter = rest.chars().next().unwrap();
        let other = if letter.is_uppercase() { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() };
        format!("{before}{other}{}", &rest[1..])
    };
    let bad = [
        json!(typo),
        json!(checksummed[2..]),
        json!(checksummed[..41]),
        json!(checksummed.replace("0x", "0X")),
        json!(""),
    ];
    for address in bad.into_iter().chain([Value::Null]) {
        let quote = json!({ "agent_name": "a", "plan_id": "starter", "chain_id": 31337, "token_symbol": "USDC",
            "payer_address": address });
        let verify = json!({ "address": address, "nonce": nonce, "signature": signature });
        // path, body, field in the error
        let table = [
            ("/api-key/recover/challenge", json!({ "address": address }), "address"),
            ("/api-key/recover/verify", verify, "address"),
            ("/signup/pay/quote", quote, "payer_address"),
        ];
        for (path, body, field) in table {
            let refused = shop.client().post(path, &body).expect(400);
            assert_eq!(refused.error(), "validation_failed", "{body}");
            assert!(refused.json()["fields"][field].is_string(), "{body}: {}", refused.text());
        }
    }
    let _ = shop.verify(&customer.address(), &nonce, &signature).expect(200);
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
    shop.site.verify();
}
