//! Payments that are altered, too early, too late, not ours, or executed by others.

use std::sync::atomic::Ordering;

use http::Request;
use metering_core::access::Payer;
use metering_core::chains::{Address, TokenUnits, WalletSignature};
use metering_core::offers::{Authorization, AuthorizationNonce, AuthorizationState, SignedAuthorization};
use metering_core::{AccountId, ApiKey, NewAccount, Store, SystemRandomness};
use serde_json::{Value, json};

use super::ledger::{CHAIN, Call, domain};
use super::scene::{
    LARGE, SMALL, Scene, accepted, assert_served, encoded, payload, payment, payment_v1, reason, refusal,
};
use super::wallet::Wallet;

/// Sends a payment with one field changed, and returns the refusal.
async fn altered(scene: &Scene, signed: &SignedAuthorization, pointer: &str, value: Value) -> (u16, String, bool) {
    let mut document = json!({"x402Version": 2, "accepted": accepted(signed), "payload": payload(signed)});
    *document.pointer_mut(pointer).unwrap() = value;
    let request = Request::get("/quote").header("payment-signature", encoded(&document)).body(String::new()).unwrap();
    refusal(&scene.ask(request).await)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_taken_for_a_payment_that_was_altered() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    let other = Wallet::of(2).address.to_checksummed();
    let soon = (scene.seconds() + 301).to_string();
    for (pointer, value) in [
        ("/payload/authorization/from", json!(other)),
        ("/payload/authorization/to", json!(other)),
        ("/payload/authorization/value", json!("500000")),
        ("/payload/authorization/value", json!("50001")),
        ("/payload/authorization/value", json!("1")),
        ("/payload/authorization/validAfter", json!("0")),
        ("/payload/authorization/validBefore", json!(soon)),
        ("/payload/authorization/nonce", json!(format!("0x{}", "02".repeat(32)))),
        ("/payload/signature", json!(format!("0x{}", "1b".repeat(65)))),
        ("/accepted/network", json!("eip155:8453")),
        ("/accepted/asset", json!(other)),
    ] {
        let refused = altered(&scene, &signed, pointer, value.clone()).await;
        assert_eq!(refused, (402, "payment_refused".to_owned(), true), "{pointer} {value}");
    }
    assert_eq!((scene.received(), scene.served(), scene.account_of(1).await), (0, 0, None));
    assert_eq!(scene.record(&signed).await, None);
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
}

#[tokio::test(start_paused = true)]
async fn only_what_was_offered_is_executed() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let now = scene.seconds();
    let good = wallet.authorization(SMALL, 1, now);
    let table = [
        ("invalid_exact_evm_payload_recipient_mismatch", Authorization { to: Wallet::of(2).address, ..good }),
        ("invalid_payment_requirements", Authorization { value: TokenUnits::new(SMALL - 1), ..good }),
        ("invalid_payment_requirements", Authorization { value: TokenUnits::new(SMALL + 1), ..good }),
        ("invalid_exact_evm_payload_authorization_valid_after", Authorization { valid_after: now + 60, ..good }),
        ("invalid_exact_evm_payload_authorization_valid_before", Authorization { valid_before: now, ..good }),
        ("invalid_exact_evm_payload_authorization_valid_before", Authorization { valid_before: now + 6, ..good }),
    ];
    for (expected, authorization) in table {
        let response = scene.send("/quote", Some(&scene.key), Some(&wallet.sign(authorization))).await;
        assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true), "{expected}");
        assert_eq!(reason(&response), expected);
    }
    // For another wallet, and for a wallet without tokens.
    let foreign =
        SignedAuthorization { signature: Wallet::of(2).sign_digest(good.digest(&domain())), ..wallet.sign(good) };
    let response = scene.send("/quote", None, Some(&foreign)).await;
    assert_eq!(reason(&response), "invalid_exact_evm_payload_signature");
    let poor = scene.signed(77, SMALL, 1);
    let response = scene.send("/quote", None, Some(&poor)).await;
    assert_eq!(reason(&response), "insufficient_funds");
    assert_eq!((scene.received(), scene.record(&poor).await), (0, None));
    let accounts = scene.store.accounts(None, 10).await.unwrap().items;
    assert_eq!(accounts.len(), 1, "no account was created");
}

#[tokio::test(start_paused = true)]
async fn a_stranger_who_submits_it_first_changes_nothing() {
    // Alone, or in one transaction with transfers of the stranger's own.
    let strangers = [Vec::new(), vec![Call::Transfer(Wallet::of(8).address, super::ledger::RECIPIENT, 1)]];
    for more in strangers {
        let scene = Scene::new().await;
        let signed = scene.signed(1, SMALL, 1);
        scene.node.mines.store(false, Ordering::SeqCst);
        assert_eq!(scene.send("/quote", Some(&scene.key), Some(&signed)).await.status(), 503);
        let own = u128::try_from(more.len()).unwrap();
        let calls = [vec![Call::Execute(signed.clone())], more].concat();
        let hash = scene.node.by_stranger(calls);
        assert_served(&scene.send("/quote", Some(&scene.key), Some(&signed)).await);
        assert_eq!(scene.record(&signed).await.unwrap().tx.unwrap().hash, hash);
        assert_eq!((scene.balance(&scene.account).await, scene.received()), ("0.03".to_owned(), SMALL + own));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_executed_before_we_saw_it_is_its_payers() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    scene.node.by_stranger(vec![Call::Execute(signed.clone())]);
    // It has expired by now, and its transaction is old.
    scene.wait(1_000).await;
    let thief = scene.send("/quote", Some(&scene.key), Some(&signed)).await;
    assert_eq!(refusal(&thief), (409, "payment_credited".to_owned(), false));
    scene.wait(5).await;
    assert_eq!((scene.balance(&scene.account).await, scene.balance_of(1).await), ("0".to_owned(), "0.05".to_owned()));
    scene.assert_credited_what_was_received().await;
    // Without a key, its payer is served at once.
    let signed = scene.signed(2, SMALL, 1);
    scene.node.by_stranger(vec![Call::Execute(signed.clone())]);
    scene.wait(1_000).await;
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_one_fails_after_it_was_looked_for() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    scene.node.by_stranger(vec![Call::Cancel(signed.authorization.from, signed.authorization.nonce)]);
    assert_eq!(scene.send("/quote", None, Some(&signed)).await.status(), 503);
    scene.wait(320).await;
    let response = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true));
    assert_eq!(reason(&response), "invalid_exact_evm_nonce_already_used");
    assert_eq!(scene.received(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_nonce_used_for_another_transfer_pays_nothing() {
    let scene = Scene::new().await;
    let (wallet, signed) = (Wallet::of(1), scene.signed(1, SMALL, 1));
    let other = Authorization { to: Wallet::of(2).address, ..signed.authorization };
    // Next to it, the payer pays the amount of another authorization. One transfer buys one credit.
    let real = scene.signed(1, SMALL, 9);
    scene.node.by_stranger(vec![Call::Execute(wallet.sign(other)), Call::Execute(real.clone())]);
    assert_served(&scene.send("/quote", None, Some(&real)).await);
    assert_ne!(scene.send("/quote", None, Some(&signed)).await.status(), 200);
    scene.keep_up().await;
    scene.assert_credited_what_was_received().await;
    assert_eq!(scene.served(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_payer_blocked_after_the_check_pays_nothing_and_frees_its_place() {
    let scene = Scene::new().await;
    scene.node.mines.store(false, Ordering::SeqCst);
    let signed = scene.signed(1, SMALL, 1);
    let sending = tokio::spawn({
        let (scene, signed) = (scene.clone(), signed.clone());
        async move { scene.send("/quote", None, Some(&signed)).await }
    });
    scene.wait(3).await;
    scene.node.ledger().blocked.insert(signed.authorization.from);
    scene.node.mine();
    let response = sending.await.unwrap();
    assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true));
    assert_eq!(reason(&response), "invalid_transaction_state");
    assert_eq!((scene.received(), scene.node.ledger().world().gas_mined), (0, 1));
    scene.node.mines.store(true, Ordering::SeqCst);
    assert_served(&scene.send("/quote", None, Some(&scene.signed(2, SMALL, 1))).await);
    // The same payment is not even simulated again: in a simulation it may succeed.
    let response = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true));
    assert_eq!(reason(&response), "invalid_transaction_state");
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn without_gas_nothing_is_stored_and_operators_can_be_told() {
    let scene = Scene::new().await;
    scene.node.has_gas.store(false, Ordering::SeqCst);
    let signed = scene.signed(1, SMALL, 1);
    let response = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&response), (503, "settlement_unavailable".to_owned(), false));
    assert_eq!((scene.record(&signed).await, scene.account_of(1).await), (None, None));
    scene.node.has_gas.store(true, Ordering::SeqCst);
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
}

#[tokio::test(start_paused = true)]
async fn contract_wallets_pay_and_do_not_get_the_account_of_their_address_on_another_chain() {
    let scene = Scene::new().await;
    let bytes = format!("0x{}", "cd".repeat(70));
    for (number, elsewhere) in [(0x41, false), (0x42, true)] {
        let address = Address::from_bytes([number; 20]);
        let nonce = AuthorizationNonce::from_bytes([number; 32]);
        let authorization =
            Authorization { from: address, nonce, ..Wallet::of(1).authorization(SMALL, 1, scene.seconds()) };
        let signed = SignedAuthorization {
            signature: WalletSignature::parse(&bytes).unwrap(),
            ..Wallet::of(1).sign(authorization)
        };
        {
            let mut ledger = scene.node.ledger();
            ledger.contracts.insert(address);
            ledger.genesis.insert(address, 10 * SMALL);
            let digest = authorization.digest(&domain());
            ledger.accepted.insert((address, digest, signed.signature.as_bytes().to_vec()));
        }
        if elsewhere {
            let (key, id) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
            let payer = Some(Payer { address, chain_id: CHAIN + 1 });
            let new =
                NewAccount { payer, ..NewAccount::new(id, "other".parse().unwrap(), key.hash(), scene.clock.now()) };
            scene.store.create_account(new).await.unwrap();
        }
        let response = scene.send("/quote", None, Some(&signed)).await;
        if elsewhere {
            assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true));
            assert_eq!(scene.record(&signed).await, None);
        } else {
            assert_served(&response);
        }
    }
    assert_eq!(scene.received(), SMALL);
}

/// A signature as wallets wrap it while they may not be deployed (ERC-6492): the factory, the call that deploys the
/// wallet, and the wallet's own signature of 70 bytes.
fn wrapped(signature: &str) -> String {
    let number = |number: usize| format!("{number:064x}");
    let own = format!("{}{}{}", number(70), &signature[2..], "0".repeat(52));
    let call = format!("{}{}", number(32), "ab".repeat(32));
    format!("0x{}{}{}{call}{own}{}", "11".repeat(32), number(96), number(160), "6492".repeat(16))
}

#[tokio::test(start_paused = true)]
async fn wallets_that_are_contracts_pay_once_they_are_deployed() {
    let scene = Scene::new().await;
    let (address, own) = (Address::from_bytes([0x43; 20]), format!("0x{}", "cd".repeat(70)));
    let nonce = AuthorizationNonce::from_bytes([0x43; 32]);
    let authorization =
        Authorization { from: address, nonce, ..Wallet::of(1).authorization(SMALL, 1, scene.seconds()) };
    let signed = SignedAuthorization {
        signature: WalletSignature::parse(&wrapped(&own)).unwrap(),
        ..Wallet::of(1).sign(authorization)
    };
    scene.node.ledger().genesis.insert(address, 10 * SMALL);
    let response = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true));
    let message = serde_json::from_str::<serde_json::Value>(response.body()).unwrap()["message"].to_string();
    assert!(message.contains("deploy the wallet first"), "{message}");
    assert_eq!(scene.record(&signed).await, None);
    {
        let mut ledger = scene.node.ledger();
        ledger.contracts.insert(address);
        let own = WalletSignature::parse(&own).unwrap().as_bytes().to_vec();
        ledger.accepted.insert((address, authorization.digest(&domain()), own));
    }
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    assert_eq!(scene.received(), SMALL);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_account_is_not_credited() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    let account = scene.account_of(1).await.unwrap().id;
    scene.store.revoke_account(&account, scene.clock.now()).await.unwrap();
    // Its wallet gets a new one, as with any other payment.
    assert_served(&scene.send("/quote", None, Some(&scene.signed(1, SMALL, 2))).await);
    assert_ne!(scene.account_of(1).await.unwrap().id, account);
    assert_eq!(scene.balance(&account).await, "0.03");
    // Revoked while its payment is in progress: the payment stays pending, for an operator.
    scene.node.mines.store(false, Ordering::SeqCst);
    let third = scene.signed(2, SMALL, 1);
    assert_eq!(scene.send("/quote", Some(&scene.key), Some(&third)).await.status(), 503);
    scene.store.revoke_account(&scene.account, scene.clock.now()).await.unwrap();
    scene.node.mine();
    scene.wait(60).await;
    assert_eq!(scene.record(&third).await.unwrap().state, AuthorizationState::Pending);
    assert_eq!(scene.balance(&scene.account).await, "0");
}

#[tokio::test(start_paused = true)]
async fn an_unoffered_amount_of_version_1_is_refused() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL + LARGE, 1);
    let request = Request::get("/quote").header("x-payment", payment_v1(&signed)).body(String::new()).unwrap();
    assert_eq!(refusal(&scene.ask(request).await), (402, "payment_refused".to_owned(), true));
    // The offer that a payment claims to accept is ignored: the signed amount decides.
    let signed = scene.signed(1, SMALL, 1);
    let claimed = accepted(&scene.signed(1, LARGE, 1));
    let request = Request::get("/quote").header("payment-signature", payment(&claimed, &signed));
    assert_served(&scene.ask(request.body(String::new()).unwrap()).await);
    assert_eq!(scene.balance_of(1).await, "0.03");
}
