//! Rotating a key with the wallet that paid.

use std::time::Duration;

use metering_core::Store;
use metering_core::chains::{ChainError, WalletSignature, signing_digest};
use metering_core::wire::{ChallengeRequest, ChallengeResponse};
use tokio::task::JoinSet;

use super::scene::{MAIN, Scene, code, key_of};
use super::wallet::Wallet;

async fn challenge(scene: &Scene, wallet: &Wallet) -> ChallengeResponse {
    let request = ChallengeRequest { address: Some(wallet.address.to_checksummed()) };
    scene.service.recovery().challenge(&request).await.unwrap()
}

#[tokio::test]
async fn rotation_gives_payer_a_new_key_and_revokes_the_old() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (old, claimed) = scene.customer(&wallet, MAIN).await;
    let opened = challenge(&scene, &wallet).await;
    for part in [
        "https://api.example",
        "old key stops working",
        &wallet.address.to_checksummed(),
        &opened.nonce,
        &opened.expires_at,
        "https://api.example/terms",
    ] {
        assert!(opened.message.contains(part), "{part} in {}", opened.message);
    }
    assert_eq!(opened.expires_in, 600);
    let response = scene.verify(wallet.address, &opened.nonce, &wallet.sign(&opened.message)).await.unwrap();
    let new = key_of(&response.api_key);
    assert!(response.rotated && response.status == "ok");
    assert_eq!((response.org_id, response.credit_balance), (claimed.org_id, claimed.credit_balance));
    assert_eq!((scene.is_live(&old).await, scene.is_live(&new).await), (false, true));
    let again = scene.verify(wallet.address, &opened.nonce, &wallet.sign(&opened.message)).await;
    assert_eq!(code(again), "not_found");
}

#[tokio::test]
async fn wrong_responses_have_their_codes() {
    let scene = Scene::new().await;
    let (wallet, other) = (Wallet::of(1), Wallet::of(2));
    let (key, _) = scene.customer(&wallet, MAIN).await;
    scene.customer(&other, MAIN).await;
    let opened = challenge(&scene, &wallet).await;
    let right = wallet.sign(&opened.message);
    let longer = format!("{}0", opened.nonce);
    for nonce in ["unknown", "", "a\0b", "\0".repeat(32).as_str(), "ä".repeat(16).as_str(), longer.as_str()] {
        assert_eq!(code(scene.verify(wallet.address, nonce, &right).await), "not_found", "{nonce:?}");
    }
    assert_eq!(code(scene.verify(other.address, &opened.nonce, &right).await), "address_mismatch");
    let wrong = [
        ("another wallet's", other.sign(&opened.message)),
        ("another text's", wallet.sign("another text")),
        ("nothing", "0x".to_owned()),
        ("too short", right[..130].to_owned()),
    ];
    for (what, signature) in wrong {
        assert_eq!(code(scene.verify(wallet.address, &opened.nonce, &signature).await), "invalid_signature", "{what}");
    }
    // After four wrong signatures, the right one is still accepted.
    scene.verify(wallet.address, &opened.nonce, &right).await.unwrap();
    assert!(!scene.is_live(&key).await);
}

#[tokio::test]
async fn five_wrong_signatures_use_up_only_their_challenge() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (key, _) = scene.customer(&wallet, MAIN).await;
    let (spoilt, other) = (challenge(&scene, &wallet).await, challenge(&scene, &wallet).await);
    for _ in 0..5 {
        let response = scene.verify(wallet.address, &spoilt.nonce, &wallet.sign("no")).await;
        assert_eq!(code(response), "invalid_signature");
    }
    let right = wallet.sign(&spoilt.message);
    assert_eq!(code(scene.verify(wallet.address, &spoilt.nonce, &right).await), "not_found");
    assert!(scene.is_live(&key).await);
    scene.verify(wallet.address, &other.nonce, &wallet.sign(&other.message)).await.unwrap();
}

#[tokio::test]
async fn a_challenge_expires() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    scene.customer(&wallet, MAIN).await;
    let opened = challenge(&scene, &wallet).await;
    scene.clock.pass(Duration::from_secs(601));
    let response = scene.verify(wallet.address, &opened.nonce, &wallet.sign(&opened.message)).await;
    assert_eq!(code(response), "challenge_expired");
}

#[tokio::test]
async fn wallet_without_account_gets_a_clear_error() {
    let scene = Scene::new().await;
    assert_eq!(code(scene.rotate(&Wallet::of(1)).await), "no_linked_wallet");
    let (_, claimed) = scene.customer(&Wallet::of(1), MAIN).await;
    scene
        .store
        .revoke_account(&claimed.org_id.parse().unwrap(), metering_core::Timestamp::from_unix_millis(0))
        .await
        .unwrap();
    assert_eq!(code(scene.rotate(&Wallet::of(1)).await), "no_linked_wallet");
}

#[tokio::test]
async fn twenty_responses_to_one_challenge_create_one_key() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (old, _) = scene.customer(&wallet, MAIN).await;
    let opened = challenge(&scene, &wallet).await;
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let (service, signature) = (scene.service.clone(), wallet.sign(&opened.message));
        let request = metering_core::wire::VerifyRequest {
            address: Some(wallet.address.to_string()),
            nonce: Some(opened.nonce.clone()),
            signature: Some(signature),
        };
        tasks.spawn(async move { service.recovery().verify(&request).await });
    }
    let responses = tasks.join_all().await;
    let keys: Vec<_> =
        responses.iter().filter_map(|response| response.as_ref().ok()).map(|a| key_of(&a.api_key)).collect();
    assert_eq!(keys.len(), 1);
    assert!(responses.into_iter().filter(Result::is_err).all(|response| code(response) == "not_found"));
    assert_eq!((scene.is_live(&keys[0]).await, scene.is_live(&old).await), (true, false));
}

#[tokio::test]
async fn contract_wallet_signature_is_checked_on_its_own_chain() {
    let scene = Scene::new().await;
    let (contract, owner) = (Wallet::of(9), Wallet::of(1));
    let (key, _) = scene.customer(&contract, MAIN).await;
    let opened = challenge(&scene, &contract).await;
    let signature = owner.sign(&opened.message);
    let bytes = WalletSignature::parse(&signature).unwrap();
    // A contract with the same address on another chain is not called, even if it would accept.
    scene.side.accept(contract.address, signing_digest(&opened.message), bytes.as_bytes());
    assert_eq!(code(scene.verify(contract.address, &opened.nonce, &signature).await), "invalid_signature");
    scene.main.trouble(Some(ChainError::Unavailable("down".into())));
    for _ in 0..10 {
        assert_eq!(code(scene.verify(contract.address, &opened.nonce, &signature).await), "rpc_error");
    }
    scene.main.trouble(None);
    scene.main.accept(contract.address, signing_digest(&opened.message), bytes.as_bytes());
    scene.verify(contract.address, &opened.nonce, &signature).await.unwrap();
    assert!(!scene.is_live(&key).await);
}
