//! Rotation over HTTP with signatures by an independent library: every form of address and signature, what uses up a
//! challenge and what does not, contract wallets, and many rotations at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use metering_tests::answer::Answer;
use metering_tests::chain::Chain;
use metering_tests::chain::account::Account;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::Fault;
use serde_json::{Value, json};

use crate::market::{Kind, Market, STARTER, key_of};
use crate::market_settings::retry_after;

/// The order of the curve's group (SEC 2, secp256k1).
const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

fn challenge(market: &Market, address: &str) -> Answer {
    market.client().post("/api-key/recover/challenge", &json!({ "address": address }))
}

/// The nonce of an open challenge, and a valid signature for it.
fn answered(market: &Market, customer: &Account) -> (String, String) {
    let (nonce, message) = market.challenge(&customer.address());
    (nonce, market.chain.wallet().sign_message(customer, &message))
}

/// The same signature with the other s, which is also mathematically valid on the curve (EIP-2).
fn other_half(signature: &str) -> String {
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
fn a_signature_is_65_bytes_of_the_wallet_and_nothing_else() {
    let Some(market) = Market::open() else { return };
    let customer = market.customer();
    let mut key = market.signed_up(Kind::Token, &customer);
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
        ("the other half of s", other_half),
        ("zeros", |_| format!("0x{}", "00".repeat(65))),
        ("r of zero", |right| format!("0x{}{}", "00".repeat(32), &right[66..])),
        ("s of the group's order", |right| format!("{}{ORDER}1b", &right[..66])),
        ("10,000 bytes", |_| format!("0x{}", "ab".repeat(10_000))),
    ];
    for (what, change) in wrong {
        let (nonce, right) = answered(&market, &customer);
        let refused = market.verify(&address, &nonce, &change(&right));
        assert_eq!((refused.status, refused.error().as_str()), (400, "invalid_signature"), "{what}");
        assert_eq!(market.server.client_with(&key).get("/credits/balance").status, 200, "{what}");
    }
    let right: [(&str, Change); 3] = [
        ("as wallets make it", str::to_owned),
        ("v of 0 or 1", |right| format!("{}{}", &right[..130], if right.ends_with("1b") { "00" } else { "01" })),
        ("upper case", |right| format!("0x{}", right[2..].to_uppercase())),
    ];
    for (what, change) in right {
        let (nonce, right) = answered(&market, &customer);
        let rotated = market.verify(&address, &nonce, &change(&right));
        assert_eq!(rotated.status, 200, "{what}: {}", rotated.text());
        assert_eq!(market.server.client_with(&key).get("/credits/balance").status, 401, "{what}");
        key = key_of(&rotated);
        assert_eq!(market.balance(&key), "12.5", "{what}");
    }
}

#[test]
fn an_address_is_read_in_any_case_and_its_checksum_is_held_to() {
    let Some(market) = Market::open() else { return };
    let customer = market.customer();
    let _ = market.signed_up(Kind::Token, &customer);
    let checksummed = customer.checksummed().to_owned();
    let upper = format!("0x{}", customer.address()[2..].to_uppercase());
    for address in [customer.address(), checksummed.clone(), upper] {
        let (nonce, message) = market.challenge(&address);
        assert!(message.contains(&checksummed), "{message}");
        let signature = market.chain.wallet().sign_message(&customer, &message);
        let _ = market.verify(&address, &nonce, &signature).expect(200);
    }
    let (nonce, signature) = answered(&market, &customer);
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
            let refused = market.client().post(path, &body).expect(400);
            assert_eq!(refused.error(), "validation_failed", "{body}");
            assert!(refused.json()["fields"][field].is_string(), "{body}: {}", refused.text());
        }
    }
    let _ = market.verify(&customer.address(), &nonce, &signature).expect(200);
}

#[test]
fn what_is_wrong_is_told_in_a_fixed_order_and_only_wrong_signatures_use_a_challenge_up() {
    let Some(mut market) = Market::open() else { return };
    let (customer, other) = (market.customer(), market.customer());
    let key = market.signed_up(Kind::Token, &customer);
    let _ = market.signed_up(Kind::Native, &other);
    let (own, others) = (customer.address(), other.address());
    let (live, right) = answered(&market, &customer);
    let (spare, spare_right) = answered(&market, &customer);
    market.reopen(&[("METERING_RECOVERY__CHALLENGE_LIFETIME", "1s")]);
    let (expired, late) = answered(&market, &customer);
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
            let refused = market.verify(address, nonce, signature);
            assert_eq!((refused.status, refused.error().as_str()), (status, error), "{address} {nonce} {signature}");
        }
    }
    let missing = market.client().post("/api-key/recover/verify", &json!({ "address": own })).expect(400).json();
    assert!(missing["fields"]["nonce"].is_string() && missing["fields"]["signature"].is_string(), "{missing}");
    // Five wrong signatures of any kind use up their challenge, but no other.
    let wallet = market.chain.wallet();
    let forged = wallet.sign_message(&other, "anything");
    for signature in ["0xab", "", &late, &forged, &spare_right] {
        assert_eq!(market.verify(&own, &live, signature).expect(400).error(), "invalid_signature");
    }
    assert_eq!(market.verify(&own, &live, &right).expect(404).error(), "not_found");
    assert_eq!(market.balance(&key), "12.5");
    let rotated = market.verify(&own, &spare, &spare_right).expect(200);
    assert_eq!(market.verify(&own, &spare, &spare_right).expect(404).error(), "not_found");

    // A revoked account can no longer rotate, even with an open challenge.
    market.reopen(&[]);
    let (nonce, right) = answered(&market, &customer);
    let org_id = rotated.json()["org_id"].as_str().unwrap().to_owned();
    let _ = market.site.admin_json(&["account", "revoke", &org_id, "--yes"]);
    assert_eq!(market.verify(&own, &nonce, &right).expect(404).error(), "not_found");
    assert_eq!(challenge(&market, &own).expect(404).error(), "no_linked_wallet");
}

#[test]
fn a_contract_wallet_is_asked_on_the_chain_that_paid_and_on_no_other() {
    let Some(chain) = Chain::start() else { return };
    let proxy = Proxy::start(&chain);
    let urls = format!("'{}'", proxy.url());
    let mut market = Market::on(chain, &urls, "1", "attempts = 1\nrequest_timeout = '2s'");
    let (owner, customer) = (market.customer(), market.customer());
    let contract = market.chain.wallet().deploy_contract_wallet(&owner);
    market.chain.wallet().mint(&market.token, &contract, 10 * STARTER);
    let quote = market.quote(Kind::Token, &contract);
    let (token, recipient) = (market.token.clone(), market.recipient.address());
    let hash = market.chain.wallet().transfer_by_contract(&owner, &contract, &token, &recipient, quote.units);
    let key = key_of(&market.claim(&quote, &hash).expect(200));
    let customers_key = market.signed_up(Kind::Token, &customer);
    // The owner's own address has no account.
    assert_eq!(challenge(&market, &owner.address()).expect(404).error(), "no_linked_wallet");
    let (nonce, message) = market.challenge(&contract);
    let right = market.chain.wallet().sign_message(&owner, &message);

    // While the chain cannot be read, the signature is neither accepted nor refused, and nothing is used up.
    for fault in [Fault::HttpError(500), Fault::TimeOut, Fault::WrongChainId(1)] {
        proxy.set(fault.clone());
        for _ in 0..3 {
            let refused = market.verify(&contract, &nonce, &right).expect(502);
            assert!(matches!(refused.error().as_str(), "rpc_error" | "rpc_chain_mismatch"), "{}", refused.text());
            let _ = retry_after(&refused);
        }
    }
    // A wallet with its own key needs no chain.
    let (customers_nonce, signature) = answered(&market, &customer);
    let _ = market.verify(&customer.address(), &customers_nonce, &signature).expect(200);
    assert_eq!(market.server.client_with(&customers_key).get("/credits/balance").status, 401);
    proxy.set(Fault::PassThrough);

    // A server without that chain accepts no signature of the contract.
    let without = "[limits]\nsignup_per_ip = 'off'\nrecovery_per_ip = 'off'\nper_wallet = 'off'\n";
    let file = market.site.write("without.toml", without);
    market.server = market.site.server().args(["--config", file.to_str().unwrap()]).start();
    assert_eq!(market.verify(&contract, &nonce, &right).expect(400).error(), "invalid_signature");
    assert_eq!(market.balance(&key), "12.5");

    market.reopen(&[]);
    let rotated = market.verify(&contract, &nonce, &right).expect(200);
    assert_eq!(market.server.client_with(&key).get("/credits/balance").status, 401);
    assert_eq!(market.balance(&key_of(&rotated)), "12.5");
}

#[test]
fn of_many_rotations_at_once_the_last_ones_key_is_left() {
    let Some(market) = Market::open() else { return };
    let customer = market.customer();
    let old = market.signed_up(Kind::Token, &customer);
    let org_id = market.server.client_with(&old).get("/credits/balance").expect(200).json()["org_id"].clone();
    let _ = market.site.admin_json(&["account", "limits", org_id.as_str().unwrap(), "--rpm", "0", "--rpd", "0"]);
    let answers: Vec<_> = (0..20).map(|_| answered(&market, &customer)).collect();
    let (start, rotated) = (Arc::new(Barrier::new(answers.len())), Arc::new(AtomicBool::new(false)));
    let hammers = [(); 4].map(|()| {
        let (client, rotated) = (market.server.client_with(&old), Arc::clone(&rotated));
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
    let callers = answers.into_iter().map(|(nonce, signature)| {
        let body = json!({ "address": customer.address(), "nonce": nonce, "signature": signature });
        let (client, start, rotated) = (market.client(), Arc::clone(&start), Arc::clone(&rotated));
        thread::spawn(move || {
            start.wait();
            let answer = client.post("/api-key/recover/verify", &body).expect(200);
            rotated.store(true, Ordering::SeqCst);
            key_of(&answer)
        })
    });
    let callers: Vec<_> = callers.collect();
    let keys: BTreeSet<String> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
    let served: u64 = hammers.into_iter().map(|hammer| hammer.join().unwrap()).sum();
    assert_eq!(keys.len(), 20);
    let live: Vec<_> =
        keys.iter().filter(|key| market.server.client_with(key).get("/credits/balance").status == 200).collect();
    let [live] = live.as_slice() else { panic!("{} keys are live", live.len()) };
    let summary = market.server.client_with(live).get("/credits/usage/summary").expect(200).json();
    assert_eq!(summary["totals"]["usage_events"], served, "exactly the served requests were charged");
    market.site.verify();
}
