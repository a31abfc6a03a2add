//! Wallets that sign in to use their credits without a key, and those who would like to be taken for them.

use http::{Request, Response};
use metering_core::access::{Payer, Scope};
use metering_core::chains::Address;
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{AuthorizationStore, KeyStore};
use metering_core::{AccountId, ApiKey, NewAccount, Store, SystemRandomness};
use metering_pay::wire::x402::SignIn;
use serde_json::{Value, json};

use super::ledger::CHAIN;
use super::scene::{SMALL, Scene, accepted, assert_served, body, decoded, encoded, payment, payment_v1, refusal};
use super::wallet::Wallet;

/// The message of a 402 for a wallet to sign.
pub(super) async fn message(scene: &Scene, address: Address) -> Value {
    let response = scene.send("/quote", None, None).await;
    let extension = &decoded(&response, "payment-required")["extensions"]["sign-in-with-x"];
    let mut message = extension["info"].clone();
    message["address"] = json!(address.to_checksummed());
    message["chainId"] = extension["supportedChains"][0]["chainId"].clone();
    message["type"] = json!("eip191");
    message
}

fn with_signature(message: &Value, signature: &[u8]) -> String {
    let mut message = message.clone();
    message["signature"] = json!(format!("0x{}", hex::encode(signature)));
    encoded(&message)
}

fn digest(message: &Value) -> [u8; 32] {
    SignIn::parse(&with_signature(message, &[0; 65])).unwrap().digests().next().unwrap()
}

/// The header with this message, signed by a wallet.
pub(super) fn signed_by(wallet: u8, message: &Value) -> String {
    with_signature(message, Wallet::of(wallet).sign_digest(digest(message)).as_bytes())
}

/// The header that a wallet makes of a new 402.
pub(super) async fn sign_in(scene: &Scene, wallet: u8) -> String {
    signed_by(wallet, &message(scene, Wallet::of(wallet).address).await)
}

pub(super) async fn send(scene: &Scene, path: &str, sign_in: &str) -> Response<String> {
    scene.ask(Request::get(path).header("sign-in-with-x", sign_in).body(String::new()).unwrap()).await
}

/// A scene where wallet 1 has paid 0.05 credits and spent 0.02 of them.
async fn paid() -> Scene {
    let scene = Scene::new().await;
    assert_served(&scene.send("/quote", None, Some(&scene.signed(1, SMALL, 1))).await);
    scene.wait(1).await;
    scene
}

fn granted() -> NewLedgerEntry {
    NewLedgerEntry::new(LedgerKind::SignupBonus, "1".parse().unwrap(), "Free credits")
}

/// Expects that the request is treated as unpaid, and returns why.
fn unpaid(response: &Response<String>) -> String {
    assert_eq!(refusal(response), (402, "payment_required".to_owned(), true));
    assert_eq!(body(response)["required"], json!(0.02));
    let required = decoded(response, "payment-required");
    assert!(required["extensions"]["sign-in-with-x"]["info"]["nonce"].is_string(), "another attempt is possible");
    body(response)["message"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_402_without_a_key_says_what_to_sign() {
    let scene = Scene::new().await;
    let extension = async |key| {
        let response = scene.send("/quote?symbol=ETH", key, None).await;
        decoded(&response, "payment-required")["extensions"]["sign-in-with-x"].clone()
    };
    let first = extension(None).await;
    let (url, info) = ("https://api.example/quote?symbol=ETH", &first["info"]);
    assert_eq!((&info["domain"], &info["uri"], &info["version"]), (&json!("api.example"), &json!(url), &json!("1")));
    assert_eq!(first["supportedChains"], json!([{"chainId": "eip155:84532", "type": "eip191"}]));
    assert_eq!(
        (&info["issuedAt"], &info["expirationTime"]),
        (&json!("2026-11-21T12:00:00.000Z"), &json!("2026-11-21T12:05:00.000Z"))
    );
    assert!(info["nonce"].as_str().is_some_and(|nonce| nonce.len() == 32 && hex::decode(nonce).is_ok()), "{info}");
    assert_ne!(info["nonce"], extension(None).await["info"]["nonce"]);
    assert_eq!(extension(Some(&scene.key)).await, Value::Null, "with a key, its account is charged");
}

#[tokio::test(start_paused = true)]
async fn a_wallet_that_paid_signs_in_and_does_not_pay_again() {
    let scene = paid().await;
    let response = send(&scene, "/quote", &sign_in(&scene, 1).await).await;
    assert_served(&response);
    assert_eq!(response.headers()["x-bds-credit-balance"], "0.01");
    assert!(!response.headers().contains_key("payment-response"));
    // The last request may cost more than is left, as with a key. Then the balance is empty.
    assert_served(&send(&scene, "/quote", &sign_in(&scene, 1).await).await);
    let empty = send(&scene, "/quote", &sign_in(&scene, 1).await).await;
    assert_eq!(refusal(&empty), (402, "insufficient_credits".to_owned(), true));
    assert_eq!((scene.received(), scene.served(), scene.balance_of(1).await), (SMALL, 3, "-0.01".to_owned()));
    scene.assert_credited_what_was_received().await;
}

/// The bound is compared with the price of the request's own tier, as with a key.
#[tokio::test(start_paused = true)]
async fn a_signed_in_wallet_bounds_the_price_of_its_tier() {
    let scene = paid().await;
    let bounded = async || {
        let header = sign_in(&scene, 1).await;
        let request = Request::get("/tiered").header("sign-in-with-x", header).header("max-cost", "0.01");
        scene.ask(request.body(String::new()).unwrap()).await
    };
    let served = bounded().await;
    assert_served(&served);
    assert_eq!(served.headers()["x-bds-credit-balance"], "0.02");
    assert_eq!(refusal(&bounded().await).0, 412, "the second one costs more");
}

#[tokio::test(start_paused = true)]
async fn a_wallet_that_sends_its_address_in_lower_case_does_not_pay_again() {
    let scene = paid().await;
    let mut message = message(&scene, Wallet::of(1).address).await;
    let signature = Wallet::of(1).sign_digest(digest(&message));
    message["address"] = json!(Wallet::of(1).address.to_string());
    assert_served(&send(&scene, "/quote", &with_signature(&message, signature.as_bytes())).await);
    assert_eq!((scene.received(), scene.balance_of(1).await), (SMALL, "0.01".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_sign_in_counts_once() {
    let scene = paid().await;
    let header = sign_in(&scene, 1).await;
    assert_served(&send(&scene, "/quote", &header).await);
    for seconds in [0, 100, 250, 700] {
        scene.wait(seconds).await;
        assert!(!unpaid(&send(&scene, "/quote", &header).await).contains("has no account"));
        scene.payments.signed_in_key(&header, None).await.unwrap_err();
    }
    // Twenty at once, in two processes.
    let (other, header) = (scene.restarted(), sign_in(&scene, 1).await);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (scene, header) = (if number % 2 == 0 { scene.clone() } else { other.clone() }, header.clone());
        tasks.spawn(async move { send(&scene, "/quote", &header).await.status().as_u16() });
    }
    let served = tasks.join_all().await.into_iter().filter(|status| *status == 200).count();
    assert_eq!((served, scene.served(), scene.balance_of(1).await), (1, 3, "-0.01".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_sign_in_from_before_the_account_never_counts() {
    let scene = Scene::new().await;
    let header = sign_in(&scene, 1).await;
    for _ in 0..2 {
        assert!(unpaid(&send(&scene, "/quote", &header).await).contains("has no account here yet"));
    }
    assert_eq!(scene.store.forget_expired(scene.clock.now()).await.unwrap(), 0);
    scene.wait(1).await;
    assert_served(&scene.send("/quote", None, Some(&scene.signed(1, SMALL, 1))).await);
    scene.wait(1).await;
    assert!(unpaid(&send(&scene, "/quote", &header).await).contains("used before"));
    assert_served(&send(&scene, "/quote", &sign_in(&scene, 1).await).await);
    assert_eq!((scene.served(), scene.balance_of(1).await), (2, "0.01".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_sign_in_is_said_and_the_request_is_unpaid() {
    let scene = paid().await;
    let good = message(&scene, Wallet::of(1).address).await;
    let with = |field: &str, value: &str| {
        let mut message = good.clone();
        message[field] = json!(value);
        message
    };
    // The wallet signed each of these.
    let signed = [
        (with("domain", "evil.example"), "another service"),
        (with("domain", "api.example:8443"), "another service"),
        (with("uri", "https://evil.example/quote"), "another service"),
        (with("uri", "http://api.example/quote"), "another service"),
        (with("chainId", "eip155:1"), "eip155:1 cannot sign in"),
        (with("issuedAt", "2026-11-21T11:54:00.000Z"), "not valid at this time"),
        (with("issuedAt", "2026-11-21T12:01:00.000Z"), "not valid at this time"),
        (with("expirationTime", "2026-11-21T12:00:01.000Z"), "not valid at this time"),
        (with("notBefore", "2026-11-21T12:01:00.000Z"), "not valid at this time"),
        (with("issuedAt", "today"), "issuedAt must be a time"),
    ];
    for (message, why) in signed {
        let refused = unpaid(&send(&scene, "/quote", &signed_by(1, &message)).await);
        assert!(refused.contains(why), "{message}: {refused}");
    }
    // Nobody else can sign for the wallet, or change the message that it signed.
    let own = sign_in(&scene, 1).await;
    let by_thief = signed_by(4, &good);
    let signature = Wallet::of(1).sign_digest(digest(&good));
    let altered = ["nonce", "statement", "requestId"]
        .map(|field| with_signature(&with(field, "0123456789"), signature.as_bytes()));
    let solana = with_signature(&with("type", "ed25519"), signature.as_bytes());
    let wrong = ["", "%%%", "e30=", &own[..own.len() - 8], &solana, &by_thief];
    for header in wrong.into_iter().chain(altered.iter().map(String::as_str)) {
        let refused = unpaid(&send(&scene, "/quote", header).await);
        assert!(refused.contains("SIGN-IN-WITH-X") || refused.contains("signature is not by 0x"), "{refused}");
        assert!(scene.payments.signed_in_key(header, None).await.is_err());
    }
    // As the wallet of someone who has no account.
    assert!(unpaid(&send(&scene, "/quote", &sign_in(&scene, 4).await).await).contains("has no account"));
    assert_eq!((scene.served(), scene.balance_of(1).await, scene.account_of(4).await), (1, "0.03".to_owned(), None));
    // None of these used the nonce.
    assert_served(&send(&scene, "/quote", &signed_by(1, &good)).await);
}

#[tokio::test(start_paused = true)]
async fn a_key_and_a_payment_come_before_a_sign_in() {
    let scene = paid().await;
    let header = sign_in(&scene, 1).await;
    let ask = async |name: &str, value: &str| {
        let request = Request::get("/quote").header("sign-in-with-x", &header).header(name, value);
        scene.ask(request.body(String::new()).unwrap()).await
    };
    let keyed = ask("authorization", &format!("Bearer {}", scene.key.expose())).await;
    assert_eq!(refusal(&keyed), (402, "insufficient_credits".to_owned(), true));
    let unknown = ApiKey::generate(&SystemRandomness);
    for bad in [format!("Bearer {}", unknown.expose()), "Bearer sk_live_mistyped".to_owned()] {
        assert_eq!(refusal(&ask("authorization", &bad).await).0, 401);
    }
    let refused = scene.signed(1, SMALL + 1, 2);
    let response = ask("payment-signature", &payment(&accepted(&refused), &refused)).await;
    assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true));
    let signed = scene.signed(2, SMALL, 3);
    assert_served(&ask("payment-signature", &payment(&accepted(&signed), &signed)).await);
    assert_served(&ask("x-payment", &payment_v1(&scene.signed(1, SMALL, 4))).await);
    assert_eq!((scene.balance_of(1).await, scene.balance_of(2).await), ("0.06".to_owned(), "0.03".to_owned()));
    // It is still there.
    assert_served(&send(&scene, "/quote", &header).await);
    let twice = Request::get("/quote").header("sign-in-with-x", &header).header("sign-in-with-x", &header);
    assert_eq!(refusal(&scene.ask(twice.body(String::new()).unwrap()).await).0, 400);
    // If only keys can pay, wallets cannot sign in.
    let header = sign_in(&scene, 1).await;
    let scene = scene.with_keys_only();
    let response = send(&scene, "/quote", &header).await;
    assert_eq!(refusal(&response), (401, "unauthorized".to_owned(), false));
    assert!(scene.payments.signed_in_key(&header, None).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_contract_signs_in_on_the_chain_of_its_account() {
    let scene = Scene::new().await;
    for (number, chain_id) in [(0x41, CHAIN), (0x42, CHAIN + 1)] {
        let address = Address::from_bytes([number; 20]);
        let (key, id) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
        let new = NewAccount::new(id.clone(), "contract".parse().unwrap(), key.hash(), scene.clock.now());
        scene
            .store
            .create_account(NewAccount { payer: Some(Payer { address, chain_id }), entries: vec![granted()], ..new })
            .await
            .unwrap();
        scene.wait(1).await;
        let accepting = async || {
            let message = message(&scene, address).await;
            let mut ledger = scene.node.ledger();
            ledger.contracts.insert(address);
            ledger.accepted.insert((address, digest(&message), vec![0xcd; 70]));
            (with_signature(&message, &[0xcd; 70]), with_signature(&message, &[0xce; 70]))
        };
        let (good, bad) = accepting().await;
        assert!(unpaid(&send(&scene, "/quote", &bad).await).contains("signature is not by"));
        if chain_id != CHAIN {
            let refused = unpaid(&send(&scene, "/quote", &good).await);
            assert!(refused.contains(&format!("on the chain of its account, eip155:{chain_id}")), "{refused}");
            continue;
        }
        scene.node.is_down.store(true, std::sync::atomic::Ordering::SeqCst);
        let down = send(&scene, "/quote", &good).await;
        assert_eq!(refusal(&down), (502, "rpc_error".to_owned(), false));
        scene.node.is_down.store(false, std::sync::atomic::Ordering::SeqCst);
        assert_served(&send(&scene, "/quote", &good).await);
        unpaid(&send(&scene, "/quote", &good).await);
    }
    assert_eq!(scene.served(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_wallet_gets_a_key_for_its_account() {
    let scene = paid().await;
    let request = serde_json::from_str(r#"{"name": "agent", "limit": "0.02"}"#).unwrap();
    let header = sign_in(&scene, 1).await;
    let parent = scene.payments.signed_in_key(&header, None).await.unwrap();
    assert_eq!((&parent.account, parent.number.is_first()), (&scene.account_of(1).await.unwrap().id, true));
    assert!(parent.terms.scopes.has(Scope::Manage));
    scene.payments.signed_in_key(&header, None).await.unwrap_err();
    unpaid(&send(&scene, "/quote", &header).await);
    let made = scene.service.keys().create_below(&parent, &request).await.unwrap();
    let key = made.key.key();
    assert_served(&scene.send("/quote", Some(key), None).await);
    assert_eq!(scene.balance_of(1).await, "0.01");
    assert_eq!(refusal(&scene.send("/quote", Some(key), None).await).1, "key_budget_exhausted");
    let nobody = scene.payments.signed_in_key(&sign_in(&scene, 4).await, None).await.unwrap_err();
    assert_eq!((nobody.code().as_str(), nobody.code().status()), ("no_linked_wallet", 404));
    let used = scene.payments.signed_in_key(&header, None).await.unwrap_err();
    assert_eq!((used.code().as_str(), used.code().status()), ("unauthorized", 401));
    assert!(used.to_string().contains("used before"), "{used}");
    // The report that the first key leaked stopped the account until its owner replaces it.
    let first = scene.store.first_key(&parent.account).await.unwrap().unwrap();
    scene.store.report_leaked(&first, scene.clock.now()).await.unwrap();
    let stopped = send(&scene, "/quote", &sign_in(&scene, 1).await).await;
    assert_eq!(refusal(&stopped), (401, "unauthorized".to_owned(), false));
}
