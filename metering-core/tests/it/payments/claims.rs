//! Claims: which ones create an account, and which do not.

use std::time::Duration;

use metering_core::chains::{
    Address, ChainError, NativeTransfer, PendingTransaction, TokenTransfer, TokenUnits, TxHash,
};
use metering_core::service::PaymentSettings;
use metering_core::wire::ClaimRequest;
use metering_core::{Error, Store};
use tokio::task::JoinSet;

use super::scene::{MAIN, RECIPIENT, SIDE, STARTER, Scene, USDC, claim_request, code, key_of, top_up_request};
use super::wallet::Wallet;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test]
async fn exact_payment_gets_an_account_and_key() {
    for plan in ["starter", "coin"] {
        let scene = Scene::new().await;
        let wallet = Wallet::of(1);
        let quote = scene.quote(&wallet, plan, MAIN).await.unwrap();
        let hash = scene.pay(&wallet, &quote);
        let response = scene.claim(&quote.signup_nonce, hash).await.unwrap();
        assert_eq!(response.status, "approved");
        assert_eq!((response.plan_id.as_str(), response.chain_id), (plan, MAIN));
        assert_eq!(response.tx_hash, hash.to_string());
        let bought = if plan == "coin" { "4" } else { "10.5" };
        let key = key_of(&response.api_key);
        let balance = scene.service.usage().balance(Some(&key)).await.unwrap();
        assert_eq!(balance.total_credits_purchased.to_string(), bought);
        assert_eq!(balance.total_credits_granted.to_string(), "2");
        assert_eq!(balance.credit_balance, response.credit_balance);
        assert_eq!(balance.payer_address, Some(wallet.address.to_string()));
        let activity = scene.service.usage().activity(Some(&key), 10).await.unwrap().transactions;
        let purchase = activity.iter().find(|entry| entry.kind == "purchase_pay_signup").unwrap();
        assert_eq!(purchase.tx_hash, Some(hash.to_string()));
        assert_eq!((purchase.chain_id, purchase.plan_id.as_deref()), (Some(MAIN), Some(plan)));
        assert!(scene.store.verify().await.unwrap().discrepancies.is_empty());
        assert_eq!(code(scene.claim(&quote.signup_nonce, hash).await), "already_claimed");
    }
}

#[tokio::test]
async fn malformed_claims_are_distinguished() {
    let scene = Scene::new().await;
    let hash = TxHash::from_bytes([9; 32]);
    let nonce = "sqn_0123456789012345678901234567890123456789012";
    // nonce, hash, code
    let table = [
        (None, None, "validation_failed"),
        (Some(nonce), None, "validation_failed"),
        (Some(nonce), Some("0x12".to_owned()), "invalid_tx_hash"),
        (Some("sqn_short"), Some("nonsense".to_owned()), "invalid_tx_hash"),
        (Some("sqn_short"), Some(hash.to_string()), "not_found"),
        (Some(nonce), Some(hash.to_string()), "not_found"),
    ];
    for (nonce, tx_hash, expected) in table {
        let signup_nonce = nonce.map(|nonce| nonce.to_owned().into());
        let request = ClaimRequest { signup_nonce, tx_hash, signature: None };
        assert_eq!(code(scene.service.payments().claim(&request).await), expected, "{request:?}");
    }
}

#[tokio::test]
async fn wrong_payment_changes_nothing() {
    let scene = Scene::new().await;
    let (wallet, other) = (Wallet::of(1), Wallet::of(2));
    let quote = scene.quote(&wallet, "starter", SIDE).await.unwrap();
    let amount: u128 = quote.amount_atomic.parse().unwrap();
    let pay = |from: &Wallet, units| scene.side.pay(USDC, from.address, RECIPIENT, units);
    let native = NativeTransfer { from: wallet.address, to: Some(USDC), value: TokenUnits::ZERO, has_input: true };
    let transfer = TokenTransfer { token: USDC, from: wallet.address, to: RECIPIENT, value: TokenUnits::new(amount) };
    let forged = TokenTransfer { token: other.address, ..transfer };
    let table = [
        ("somebody else's", pay(&other, amount), "payer_mismatch"),
        ("too little", pay(&wallet, amount - 1), "payment_mismatch"),
        ("too much", pay(&wallet, amount + 1), "payment_mismatch"),
        ("the price without the tag", pay(&wallet, STARTER), "payment_mismatch"),
        ("a fake token", scene.side.mine(true, native, vec![forged]), "payment_mismatch"),
        ("two transfers", scene.side.mine(true, native, vec![transfer, transfer]), "payment_mismatch"),
        ("reverted", scene.side.mine(false, native, vec![]), "tx_reverted"),
        (
            "native coin",
            scene.side.pay(metering_core::chains::Address::ZERO, wallet.address, RECIPIENT, amount),
            "payment_mismatch",
        ),
    ];
    for (what, hash, expected) in table {
        assert_eq!(code(scene.claim(&quote.signup_nonce, hash).await), expected, "{what}");
    }
    scene.assert_nothing_happened().await;
    let hash = scene.pay(&wallet, &quote);
    scene.claim(&quote.signup_nonce, hash).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hash_of_another_chain_is_not_found() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let elsewhere = scene.side.pay(USDC, wallet.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    assert_eq!(code(scene.claim(&quote.signup_nonce, elsewhere).await), "tx_not_found");
    scene.assert_nothing_happened().await;
}

#[tokio::test(start_paused = true)]
async fn a_shallow_payment_is_waited_for_and_then_accepted() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.main.pay(USDC, wallet.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    let Err(error) = scene.claim(&quote.signup_nonce, hash).await else { panic!("one confirmation of three") };
    let body = serde_json::to_value(error.body()).unwrap();
    assert_eq!(body["error"], "payment_unconfirmed");
    assert_eq!((&body["confirmations"], &body["required"]), (&1.into(), &3.into()));
    assert!(body["retry_after_sec"].is_u64(), "{body}");
    assert!(scene.main.looked_at() > 20, "the service waited for confirmations");
    scene.assert_nothing_happened().await;

    let waiting = tokio::spawn({
        let (service, request) = (scene.service.clone(), claim_request(&quote.signup_nonce, hash));
        async move { service.payments().claim(&request).await }
    });
    tokio::time::sleep(Duration::from_secs(10)).await;
    scene.main.grow(2);
    waiting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_payment_that_is_reorganised_away_is_not_accepted() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.main.pay(USDC, wallet.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    let request = claim_request(&quote.signup_nonce, hash);
    let service = scene.service.clone();
    let waiting = tokio::spawn(async move { service.payments().claim(&request).await });
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.main.reorganise(hash);
    scene.main.grow(20);
    assert_eq!(code(waiting.await.unwrap()), "payment_unconfirmed");
    scene.assert_nothing_happened().await;
}

#[tokio::test(start_paused = true)]
async fn chain_errors_consume_nothing() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.pay(&wallet, &quote);
    let troubles = [
        (ChainError::Unavailable("down".into()), "rpc_error"),
        (ChainError::Disagreement("two truths".into()), "rpc_error"),
        (ChainError::WrongChain { expected: MAIN, found: 5 }, "rpc_chain_mismatch"),
    ];
    for (trouble, expected) in troubles {
        scene.main.trouble(Some(trouble));
        let error = scene.claim(&quote.signup_nonce, hash).await.unwrap_err();
        assert_eq!(error.code().as_str(), expected);
        assert!(error.retry_after_seconds().is_some() && !error.to_string().contains("down"), "{error}");
    }
    scene.assert_nothing_happened().await;
    scene.main.trouble(None);
    scene.claim(&quote.signup_nonce, hash).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn chain_error_during_a_wait_does_not_end_it() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.main.pay(USDC, wallet.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    let request = claim_request(&quote.signup_nonce, hash);
    let service = scene.service.clone();
    let waiting = tokio::spawn(async move { service.payments().claim(&request).await });
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.main.trouble(Some(ChainError::Unavailable("down".into())));
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.main.grow(2);
    scene.main.trouble(None);
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn expiry_protects_the_price_only() {
    // paid after, claimed after, error code
    let hour = Duration::from_secs(60 * 60);
    let table = [(hour, 30 * DAY, None), (7 * DAY + hour / 4, DAY, None), (7 * DAY + hour, DAY, Some("quote_expired"))];
    for (paid_after, claimed_after, refusal) in table {
        let scene = Scene::new().await;
        let wallet = Wallet::of(1);
        let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
        scene.clock.pass(paid_after);
        let hash = scene.pay(&wallet, &quote);
        scene.clock.pass(claimed_after);
        let response = scene.claim(&quote.signup_nonce, hash).await;
        assert_eq!(response.err().map(|error| error.code().as_str()), refusal, "{paid_after:?}");
    }
}

#[tokio::test]
async fn payment_before_the_quote_does_not_pay_it() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let early: Vec<_> = (1..10_000_u128).collect();
    // Pay every possible tag three minutes before the quote.
    let hashes: Vec<_> =
        early.iter().map(|tag| scene.side.pay(USDC, wallet.address, RECIPIENT, STARTER + tag)).collect();
    scene.clock.pass(Duration::from_secs(181));
    let quote = scene.quote(&wallet, "starter", SIDE).await.unwrap();
    let tag = quote.amount_atomic.parse::<u128>().unwrap() - STARTER;
    let hash = hashes[usize::try_from(tag).unwrap() - 1];
    assert_eq!(code(scene.claim(&quote.signup_nonce, hash).await), "payment_predates_quote");
}

#[tokio::test]
async fn fifty_claims_of_one_quote_make_one_account() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.pay(&wallet, &quote);
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let (service, request) = (scene.service.clone(), claim_request(&quote.signup_nonce, hash));
        tasks.spawn(async move { service.payments().claim(&request).await });
    }
    let responses = tasks.join_all().await;
    let refused: Vec<_> = responses.iter().filter_map(|response| response.as_ref().err()).map(Error::code).collect();
    assert_eq!((responses.len(), refused.len()), (50, 49));
    assert!(refused.iter().all(|code| matches!(code.as_str(), "already_claimed" | "tx_already_used")), "{refused:?}");
    assert_eq!(scene.store.accounts(None, 10).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_wallet_that_got_an_account_meanwhile_tops_up_with_the_payment() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let first = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let second = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let (paid_first, paid_second) = (scene.pay(&wallet, &first), scene.pay(&wallet, &second));
    let response = scene.claim(&first.signup_nonce, paid_first).await.unwrap();
    assert_eq!(code(scene.claim(&second.signup_nonce, paid_first).await), "tx_already_used");
    assert_eq!(code(scene.claim(&second.signup_nonce, paid_second).await), "payer_already_registered");
    let topped = scene.top_up(&key_of(&response.api_key), MAIN, paid_second, None).await.unwrap();
    assert_eq!(topped.amount_added.to_string(), "10.5");
}

#[tokio::test]
async fn the_signup_bonus_can_be_none() {
    let settings = PaymentSettings { signup_bonus: metering_core::Credits::ZERO, ..PaymentSettings::default() };
    let scene = Scene::with(settings).await;
    let (_, response) = scene.customer(&Wallet::of(1), MAIN).await;
    assert_eq!(response.credit_balance.to_string(), "10.5");
}

/// Requests that take every permit to wait do not stop a claim whose payment is confirmed.
#[tokio::test(start_paused = true)]
async fn waiting_requests_do_not_block_confirmed_claims() {
    let scene = Scene::new().await;
    let (customer, late) = (Wallet::of(2), Wallet::of(3));
    let quote = scene.quote(&customer, "starter", MAIN).await.unwrap();
    let confirmed = scene.pay(&customer, &quote);
    let shallow = scene.quote(&late, "starter", MAIN).await.unwrap();
    let hash = scene.main.pay(USDC, late.address, RECIPIENT, shallow.amount_atomic.parse().unwrap());
    // Enough accounts to take every permit; each account may have two requests waiting.
    let mut waiting = JoinSet::new();
    for _ in 0..150 {
        let (key, _) = scene.account_without_wallet().await;
        for _ in 0..2 {
            let (service, key) = (scene.service.clone(), key.clone());
            waiting
                .spawn(async move { service.payments().top_up(Some(&key), &top_up_request(MAIN, hash, None)).await });
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.claim(&quote.signup_nonce, confirmed).await.unwrap();
    // A claim that gets no permit to wait gets the payment's status immediately and must retry.
    let started_at = tokio::time::Instant::now();
    assert_eq!(code(scene.claim(&shallow.signup_nonce, hash).await), "payment_unconfirmed");
    assert!(started_at.elapsed() < Duration::from_secs(1));
    for response in waiting.join_all().await {
        assert_eq!(code(response), "payment_unconfirmed");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_waits_with_a_response() {
    let scene = Scene::new().await;
    let wallet = Wallet::of(1);
    let quote = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let hash = scene.main.pay(USDC, wallet.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    let claim = || {
        let (service, request) = (scene.service.clone(), claim_request(&quote.signup_nonce, hash));
        tokio::spawn(async move { service.payments().claim(&request).await })
    };
    let waiting = claim();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let started_at = tokio::time::Instant::now();
    scene.service.payments().end_waits();
    assert_eq!(code(waiting.await.unwrap()), "payment_unconfirmed");
    assert_eq!(code(claim().await.unwrap()), "payment_unconfirmed");
    assert!(started_at.elapsed() < Duration::from_secs(1));
    scene.main.grow(2);
    scene.claim(&quote.signup_nonce, hash).await.unwrap();
}

/// A transaction that is never mined: a plain transfer of the native coin, or a call.
fn unmined(from: Address, to: Address, units: u128, has_input: bool) -> PendingTransaction {
    let native = NativeTransfer { from, to: Some(to), value: TokenUnits::new(units), has_input };
    PendingTransaction { native, transfer: None }
}

#[tokio::test(start_paused = true)]
async fn hopeless_pending_transaction_is_refused_without_waiting() {
    let scene = Scene::new().await;
    let (wallet, other_wallet) = (Wallet::of(1), Wallet::of(2));
    let elsewhere = Address::from_bytes([0x55; 20]);
    let relayer = Address::from_bytes([0x66; 20]);
    scene.main.deploy_contract(relayer);
    let tokens = scene.quote(&wallet, "starter", MAIN).await.unwrap();
    let coins = scene.quote(&wallet, "coin", MAIN).await.unwrap();
    let due: u128 = coins.amount_atomic.parse().unwrap();
    let transfer =
        |from, to| PendingTransaction { transfer: Some((to, TokenUnits::new(1))), ..unmined(from, USDC, 0, true) };
    // quote, transaction, error code; a payment that may still be mined gets the code of a wait that timed out
    let waited = "payment_unconfirmed";
    let table = [
        (&coins, unmined(wallet.address, elsewhere, due, false), "payment_mismatch"),
        (&coins, unmined(wallet.address, RECIPIENT, due, true), "payment_mismatch"),
        (&coins, unmined(wallet.address, RECIPIENT, due - 1, false), "payment_mismatch"),
        (&coins, unmined(other_wallet.address, RECIPIENT, due, false), "payer_mismatch"),
        (&coins, unmined(wallet.address, RECIPIENT, due, false), waited),
        (&tokens, unmined(wallet.address, elsewhere, 5, false), "payment_mismatch"),
        (&tokens, transfer(wallet.address, elsewhere), "payment_mismatch"),
        (&tokens, transfer(other_wallet.address, RECIPIENT), "payer_mismatch"),
        (&tokens, transfer(wallet.address, RECIPIENT), waited),
        (&tokens, unmined(other_wallet.address, relayer, 0, false), waited),
        (&tokens, unmined(other_wallet.address, relayer, 0, true), waited),
        (&tokens, unmined(other_wallet.address, elsewhere, 0, true), waited),
    ];
    for (quote, transaction, expected) in table {
        let hash = scene.main.send(transaction.clone());
        let started_at = tokio::time::Instant::now();
        assert_eq!(code(scene.claim(&quote.signup_nonce, hash).await), expected, "{transaction:?}");
        let long = started_at.elapsed() >= PaymentSettings::default().claim_wait;
        assert_eq!(long, expected == waited, "{transaction:?} took {:?}", started_at.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn waits_for_unmined_transactions_have_their_own_limit() {
    let scene = Scene::new().await;
    let started_at = tokio::time::Instant::now();
    let unpayable = unmined(Address::from_bytes([0x55; 20]), Address::from_bytes([0x66; 20]), 0, true);
    let hash = scene.main.send(unpayable);
    let mut waiting = JoinSet::new();
    for number in 1..=40 {
        let quote = scene.quote(&Wallet::of(number), "starter", MAIN).await.unwrap();
        // Each quote three times: at most two claims of a quote wait, and at most 64 in total.
        for _ in 0..3 {
            let (service, request) = (scene.service.clone(), claim_request(&quote.signup_nonce, hash));
            waiting.spawn(async move {
                assert_eq!(code(service.payments().claim(&request).await), "payment_unconfirmed");
                started_at.elapsed() >= PaymentSettings::default().claim_wait
            });
        }
    }
    // Meanwhile another customer has paid, with one confirmation so far.
    let customer = Wallet::of(99);
    let quote = scene.quote(&customer, "starter", MAIN).await.unwrap();
    let paid = scene.main.pay(USDC, customer.address, RECIPIENT, quote.amount_atomic.parse().unwrap());
    let claim = {
        let (service, request) = (scene.service.clone(), claim_request(&quote.signup_nonce, paid));
        tokio::spawn(async move { service.payments().claim(&request).await })
    };
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.main.grow(10);
    assert!(claim.await.unwrap().is_ok());
    let waited = waiting.join_all().await.into_iter().filter(|waited| *waited).count();
    assert_eq!(waited, 64);
}
