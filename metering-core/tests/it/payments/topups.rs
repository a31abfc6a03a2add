//! Top-ups: which account a payment belongs to.

use std::time::Duration;

use metering_core::Store;
use metering_core::chains::{Address, TxHash};
use metering_core::service::PaymentSettings;
use metering_core::wire::{ChainIdInput, CompletionRequest, TopUpRequest};
use tokio::task::JoinSet;

use super::scene::{MAIN, RECIPIENT, SIDE, STARTER, Scene, USDC, code, key_of};
use super::wallet::Wallet;

#[tokio::test]
async fn an_accounts_own_wallet_needs_no_signature() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (key, _) = scene.customer(&wallet, MAIN).await;
    let hash = scene.pay_price(&wallet, MAIN);
    let response = scene.top_up(&key, MAIN, hash, None).await.unwrap();
    assert_eq!((response.amount_added.to_string().as_str(), response.already_credited), ("10.5", false));
    assert_eq!(response.credit_balance.to_string(), "23");
    let again = scene.top_up(&key, MAIN, hash, None).await.unwrap();
    assert_eq!((again.amount_added.to_string().as_str(), again.already_credited), ("10.5", true));
    assert_eq!(again.credit_balance, response.credit_balance);
}

#[tokio::test]
async fn unknown_wallet_signs_once_and_is_linked_for_top_ups() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let wallet = Wallet::of(1);
    let hash = scene.pay_price(&wallet, MAIN);
    let error = scene.top_up(&key, MAIN, hash, None).await.unwrap_err();
    assert_eq!(error.code().as_str(), "payer_proof_required");
    let message = error.body().message;
    assert!(message.contains(&hash.to_string()) && message.contains("top-up"), "{message}");
    let again = scene.top_up(&key, MAIN, hash, None).await.unwrap_err().body().message;
    assert_eq!(message, again, "the message does not change");

    let wrong = Wallet::of(2).sign(&message);
    assert_eq!(code(scene.top_up(&key, MAIN, hash, Some(wrong)).await), "payer_proof_required");
    assert_eq!(code(scene.top_up(&key, MAIN, hash, Some("0xzz".into())).await), "invalid_signature");
    assert_eq!(scene.balance(&key).await, "0");
    scene.top_up(&key, MAIN, hash, Some(wallet.sign(&message))).await.unwrap();
    assert_eq!(scene.balance(&key).await, "10.5");

    // The wallet is linked now, so the next payment needs no signature.
    let next = scene.pay_price(&wallet, SIDE);
    scene.top_up(&key, SIDE, next, None).await.unwrap();
    assert_eq!(code(scene.rotate(&wallet).await), "no_linked_wallet");
}

#[tokio::test]
async fn the_payer_completes_a_top_up_without_the_accounts_key() {
    let scene = Scene::new().await;
    let (key, account) = scene.account_without_wallet().await;
    let wallet = Wallet::of(1);
    let hash = scene.pay_price(&wallet, MAIN);
    let refused = scene.top_up(&key, MAIN, hash, None).await.unwrap_err().body();
    let page = format!("https://api.example/metering/complete?account={account}&plan=starter&chain={MAIN}&tx={hash}");
    assert_eq!(refused.complete_url.as_deref(), Some(page.as_str()));
    let mut request = CompletionRequest {
        org_id: Some(account.to_string()),
        plan_id: Some("starter".to_owned()),
        chain_id: Some(ChainIdInput(MAIN)),
        tx_hash: Some(hash.to_string()),
        signature: None,
    };
    let asked = scene.service.payments().complete_top_up(&request).await.unwrap_err().body();
    assert_eq!((asked.error.as_str(), &asked.message), ("payer_proof_required", &refused.message));
    request.signature = Some(Wallet::of(2).sign(&asked.message));
    assert_eq!(code(scene.service.payments().complete_top_up(&request).await), "payer_proof_required");
    request.signature = Some(wallet.sign(&asked.message));
    for already in [false, true] {
        let done = scene.service.payments().complete_top_up(&request).await.unwrap();
        assert_eq!((done.amount_added.to_string().as_str(), done.already_credited), ("10.5", already));
        assert_eq!(done.org_id, account.to_string());
    }
    assert_eq!(scene.balance(&key).await, "10.5");
    // The refused client learns how many credits its payment added.
    let again = scene.top_up(&key, MAIN, hash, None).await.unwrap();
    assert_eq!((again.amount_added.to_string().as_str(), again.already_credited), ("10.5", true));
    request.org_id = Some("org_00000000000000000000".to_owned());
    assert_eq!(code(scene.service.payments().complete_top_up(&request).await), "not_found");
}

#[tokio::test]
async fn signature_is_valid_for_one_account_and_transaction_only() {
    let scene = Scene::new().await;
    let (mine, _) = scene.account_without_wallet().await;
    let (theirs, _) = scene.account_without_wallet().await;
    let wallet = Wallet::of(1);
    let (first, second) = (scene.pay_price(&wallet, MAIN), scene.pay_price(&wallet, MAIN));
    let message = scene.top_up(&mine, MAIN, first, None).await.unwrap_err().body().message;
    let signature = wallet.sign(&message);
    assert_eq!(code(scene.top_up(&theirs, MAIN, first, Some(signature.clone())).await), "payer_proof_required");
    assert_eq!(code(scene.top_up(&mine, MAIN, second, Some(signature.clone())).await), "payer_proof_required");
    scene.top_up(&mine, MAIN, first, Some(signature)).await.unwrap();
    assert_eq!(code(scene.top_up(&theirs, MAIN, first, None).await), "tx_already_used");
}

#[tokio::test]
async fn payment_awaited_by_a_quote_is_not_a_top_up() {
    let settings = PaymentSettings { require_payer_proof: false, ..PaymentSettings::default() };
    let scene = Scene::with(settings).await;
    let (thief, _) = scene.account_without_wallet().await;
    let victim = Wallet::of(1);
    let quote = scene.quote(&victim, "starter", MAIN).await.unwrap();
    let hash = scene.pay(&victim, &quote);
    assert_eq!(code(scene.top_up(&thief, MAIN, hash, None).await), "payment_reserved");
    scene.claim(&quote.signup_nonce, hash).await.unwrap();
    assert_eq!(code(scene.top_up(&thief, MAIN, hash, None).await), "tx_already_used");
    // Without a quote and without payer proof, the first top-up gets the payment.
    let unclaimed = scene.pay_price(&Wallet::of(2), MAIN);
    scene.top_up(&thief, MAIN, unclaimed, None).await.unwrap();
}

#[tokio::test]
async fn quote_of_a_linked_wallet_is_not_credited_to_the_account() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let wallet = Wallet::of(1);
    let first = scene.pay_price(&wallet, MAIN);
    let message = scene.top_up(&key, MAIN, first, None).await.unwrap_err().body().message;
    scene.top_up(&key, MAIN, first, Some(wallet.sign(&message))).await.unwrap();
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.pay(&wallet, &quote);
    assert_eq!(code(scene.top_up(&key, MAIN, hash, None).await), "payment_reserved");
    scene.claim(&quote.signup_nonce, hash).await.unwrap();
}

#[tokio::test]
async fn contract_with_same_address_on_another_chain_is_unknown() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (key, _) = scene.customer(&wallet, MAIN).await;
    // A private key controls the same address on every chain.
    let hash = scene.pay_price(&wallet, SIDE);
    scene.top_up(&key, SIDE, hash, None).await.unwrap();
    scene.side.deploy_contract(wallet.address);
    let hash = scene.pay_price(&wallet, SIDE);
    assert_eq!(code(scene.top_up(&key, SIDE, hash, None).await), "payer_proof_required");
}

#[tokio::test]
async fn contract_wallet_must_sign_every_top_up() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let contract = Wallet::of(9);
    let owner = Wallet::of(1);
    scene.main.deploy_contract(contract.address);
    let hash = scene.pay_price(&contract, MAIN);
    let message = scene.top_up(&key, MAIN, hash, None).await.unwrap_err().body().message;
    let signature = owner.sign(&message);
    assert_eq!(code(scene.top_up(&key, MAIN, hash, Some(signature.clone())).await), "payer_proof_required");
    let bytes = metering_core::chains::WalletSignature::parse(&signature).unwrap();
    scene.main.accept(contract.address, metering_core::chains::signing_digest(&message), bytes.as_bytes());
    scene.top_up(&key, MAIN, hash, Some(signature)).await.unwrap();
    let next = scene.pay_price(&contract, MAIN);
    assert_eq!(code(scene.top_up(&key, MAIN, next, None).await), "payer_proof_required");
}

#[tokio::test]
async fn contract_payment_needs_its_signature() {
    let scene = Scene::new().await;
    let router = Wallet::of(9);
    scene.main.deploy_contract(router.address);
    // The first customer who buys through the contract has an account with its address.
    let (first, _) = scene.customer(&router, MAIN).await;
    let paid = scene.pay_price(&router, MAIN);
    // A payment by the contract does not belong to that account, neither in a top-up nor for the watcher.
    let refused = scene.top_up(&first, MAIN, paid, None).await.unwrap_err();
    assert_eq!(refused.code().as_str(), "payer_proof_required");
    assert!(refused.body().hint.unwrap().contains("EIP-1271"));
    // A contract has no private key, so only a signature that it accepts counts.
    let signature = router.sign(&refused.body().message);
    assert_eq!(code(scene.top_up(&first, MAIN, paid, Some(signature.clone())).await), "payer_proof_required");
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((watched.credited, watched.left), (0, 1));
    assert_eq!(scene.balance(&first).await, "12.5");
    let bytes = metering_core::chains::WalletSignature::parse(&signature).unwrap();
    scene.main.accept(router.address, metering_core::chains::signing_digest(&refused.body().message), bytes.as_bytes());
    scene.top_up(&first, MAIN, paid, Some(signature)).await.unwrap();
}

#[tokio::test]
async fn each_quote_paid_through_one_contract_gets_an_account() {
    let scene = Scene::new().await;
    let router = Wallet::of(9);
    scene.main.deploy_contract(router.address);
    let mut quotes = Vec::new();
    for _ in 0..3 {
        quotes.push(scene.quote(&router, "starter", MAIN).await.unwrap());
    }
    let paid: Vec<_> = quotes.iter().map(|quote| scene.pay(&router, quote)).collect();
    let first = scene.claim(&quotes[0].signup_nonce, paid[0]).await.unwrap();
    let second = scene.claim(&quotes[1].signup_nonce, paid[1]).await.unwrap();
    // The watcher settles the third quote, and its nonce returns the key.
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((watched.claimed, watched.credited, watched.left), (1, 0, 0));
    let third = scene.claim(&quotes[2].signup_nonce, paid[2]).await.unwrap();
    for response in [&first, &second, &third] {
        assert_eq!(scene.balance(&key_of(&response.api_key)).await, "12.5");
    }
    assert!(first.org_id != second.org_id && second.org_id != third.org_id);
}

/// A quote of a contract that someone else pays first, and then its owner.
async fn two_payments_through(scene: &Scene, router: &Wallet) -> (String, TxHash, TxHash) {
    scene.main.deploy_contract(router.address);
    let quote = scene.quote(router, "starter", MAIN).await.unwrap();
    let other_payment = scene.pay(router, &quote);
    let own = scene.main.pay(USDC, router.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    (quote.signup_nonce, other_payment, own)
}

#[tokio::test]
async fn other_payment_through_the_same_contract_keeps_nonce_valid() {
    let scene = Scene::new().await;
    let (nonce, other_payment, own) = two_payments_through(&scene, &Wallet::of(9)).await;
    scene.main.grow(10);
    let watched = scene.service.payments().watch(MAIN, Some(0)).await.unwrap();
    assert_eq!((watched.claimed, watched.credited, watched.left), (1, 0, 1));
    let claimed = scene.claim(&nonce, own).await.unwrap();
    assert_eq!(claimed.tx_hash, other_payment.to_string(), "the payment that created the account");
    assert_eq!(scene.balance(&key_of(&claimed.api_key)).await, "12.5");
    for hash in [own, other_payment] {
        assert_eq!(code(scene.claim(&nonce, hash).await), "already_claimed");
    }
}

#[tokio::test]
async fn waiting_claim_gets_the_key_after_other_payment_settles_quote() {
    let settings = PaymentSettings {
        claim_wait: Duration::from_secs(60),
        claim_poll: Duration::from_millis(10),
        ..PaymentSettings::default()
    };
    let scene = Scene::with(settings).await;
    let (nonce, other_payment, own) = two_payments_through(&scene, &Wallet::of(9)).await;
    let meanwhile = async {
        while scene.main.looked_at() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(scene.service.payments().watch(MAIN, Some(0)).await.unwrap().claimed, 1);
        scene.main.grow(10);
    };
    let (claimed, ()) = tokio::join!(scene.claim(&nonce, own), meanwhile);
    let claimed = claimed.unwrap();
    assert_eq!(claimed.tx_hash, other_payment.to_string());
    assert_eq!(scene.balance(&key_of(&claimed.api_key)).await, "12.5");
}

#[tokio::test]
async fn linked_address_that_is_a_contract_elsewhere_must_sign() {
    let scene = Scene::new().await;
    let (key, _) = scene.account_without_wallet().await;
    let wallet = Wallet::of(1);
    let hash = scene.pay_price(&wallet, MAIN);
    let message = scene.top_up(&key, MAIN, hash, None).await.unwrap_err().body().message;
    scene.top_up(&key, MAIN, hash, Some(wallet.sign(&message))).await.unwrap();
    scene.side.deploy_contract(wallet.address);
    let hash = scene.pay_price(&wallet, SIDE);
    assert_eq!(scene.service.payments().watch(SIDE, Some(0)).await.unwrap().left, 1);
    assert_eq!(code(scene.top_up(&key, SIDE, hash, None).await), "payer_proof_required");
}

#[tokio::test]
async fn refusals_have_their_codes_and_change_nothing() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (key, _) = scene.customer(&wallet, SIDE).await;
    let good = scene.pay_price(&wallet, SIDE).to_string();
    let request = |plan: &str, chain: u64, hash: &str| TopUpRequest {
        plan_id: Some(plan.to_owned()),
        chain_id: Some(ChainIdInput(chain)),
        tx_hash: Some(hash.to_owned()),
        signature: None,
    };
    let too_little = scene.side.pay(USDC, wallet.address, RECIPIENT, STARTER - 1).to_string();
    let elsewhere = scene.side.pay(USDC, wallet.address, Address::from_bytes([9; 20]), STARTER).to_string();
    let table = [
        (request("starter", SIDE, "0x1"), "invalid_tx_hash"),
        (request("none", SIDE, &good), "unknown_plan"),
        (request("starter", 5, &good), "unsupported_chain"),
        (request("coin", SIDE, &good), "payment_mismatch"),
        (request("starter", SIDE, &too_little), "payment_mismatch"),
        (request("starter", SIDE, &elsewhere), "payment_mismatch"),
    ];
    for (request, expected) in table {
        assert_eq!(code(scene.service.payments().top_up(Some(&key), &request).await), expected, "{request:?}");
    }
    let of_wallet = TopUpRequest { tx_hash: Some(good.clone()), ..TopUpRequest::default() };
    for (request, expected) in [(of_wallet, "validation_failed"), (TopUpRequest::default(), "checkout_not_available")] {
        let error = scene.service.payments().top_up(Some(&key), &request).await.unwrap_err();
        let body = serde_json::to_value(error.body()).unwrap();
        assert_eq!(body["error"], expected);
        assert_eq!(body["plans_url"], "https://api.example/plans");
    }
    assert_eq!(code(scene.service.payments().top_up(None, &request("starter", SIDE, &good)).await), "unauthorized");
    assert_eq!(scene.balance(&key).await, "12.5");
}

#[tokio::test]
async fn fifty_top_ups_with_one_transaction_credit_once() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let (key, _) = scene.customer(&wallet, MAIN).await;
    let hash = scene.pay_price(&wallet, MAIN);
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let (service, key) = (scene.service.clone(), key.clone());
        let request = TopUpRequest {
            plan_id: Some("starter".to_owned()),
            chain_id: Some(ChainIdInput(MAIN)),
            tx_hash: Some(hash.to_string()),
            signature: None,
        };
        tasks.spawn(async move { service.payments().top_up(Some(&key), &request).await.unwrap().already_credited });
    }
    let responses = tasks.join_all().await;
    assert_eq!(responses.iter().filter(|already| !**already).count(), 1);
    assert_eq!(scene.balance(&key).await, "23");
    assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
}

#[tokio::test]
async fn payment_of_own_claim_is_no_top_up() {
    let scene = Scene::new().await;
    let (key, response) = scene.customer(&Wallet::of(1), MAIN).await;
    let hash = response.tx_hash.parse().unwrap();
    assert_eq!(code(scene.top_up(&key, MAIN, hash, None).await), "tx_already_used");
}
