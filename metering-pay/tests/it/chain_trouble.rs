//! Sources that fail, lag or lie, and blocks that are replaced.

use std::sync::atomic::Ordering;

use metering_core::Store;
use metering_core::money::LedgerKind;
use metering_core::offers::{AuthorizationState, SettlementFailure};

use super::scene::{SMALL, Scene, assert_served, reason, refusal};

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_delays_and_takes_nothing() {
    let scene = Scene::new().await;
    let signed = scene.signed(1, SMALL, 1);
    scene.node.is_down.store(true, Ordering::SeqCst);
    let response = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&response), (503, "settlement_unavailable".to_owned(), false));
    assert_eq!(reason(&response), "unexpected_settle_error");
    assert_eq!(scene.record(&signed).await, None);
    // It fails between acceptance and confirmation.
    scene.node.is_down.store(false, Ordering::SeqCst);
    scene.node.mines.store(false, Ordering::SeqCst);
    let sending = tokio::spawn({
        let (scene, signed) = (scene.clone(), signed.clone());
        async move { scene.send("/quote", None, Some(&signed)).await }
    });
    scene.wait(2).await;
    scene.node.is_down.store(true, Ordering::SeqCst);
    assert_eq!(refusal(&sending.await.unwrap()), (503, "settlement_pending".to_owned(), false));
    scene.node.is_down.store(false, Ordering::SeqCst);
    scene.node.mine();
    scene.wait(20).await;
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_lags_does_not_make_a_payment_fail() {
    let scene = Scene::new().await;
    scene.node.mines.store(false, Ordering::SeqCst);
    let signed = scene.signed(1, SMALL, 1);
    assert_eq!(scene.send("/quote", None, Some(&signed)).await.status(), 503);
    // Another party submitted it first. The contract refuses ours, and the next two reads do not show why.
    scene.node.ledger().mempool.clear();
    scene.node.by_stranger(vec![super::ledger::Call::Execute(signed.clone())]);
    scene.node.lag.store(2, Ordering::SeqCst);
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_lies_takes_nothing_and_the_truth_is_credited() {
    let scene = Scene::new().await;
    scene.node.lies.store(true, Ordering::SeqCst);
    let signed = scene.signed(1, SMALL, 1);
    assert_eq!(scene.send("/quote", None, Some(&signed)).await.status(), 503);
    scene.wait(330).await;
    let cancelled = scene.record(&signed).await.unwrap().state;
    assert!(matches!(cancelled, AuthorizationState::Failed { failure: SettlementFailure::Cancelled, .. }));
    assert_eq!(scene.received(), 0);
    // Executed after all, by another party.
    scene.node.lies.store(false, Ordering::SeqCst);
    let signed = scene.signed(2, SMALL, 1);
    scene.node.lies.store(true, Ordering::SeqCst);
    assert_eq!(scene.send("/quote", None, Some(&signed)).await.status(), 503);
    scene.wait(200).await;
    scene.node.by_stranger(vec![super::ledger::Call::Execute(signed.clone())]);
    scene.wait(330).await;
    assert_served(&scene.send("/quote", None, Some(&signed)).await);
    scene.assert_credited_what_was_received().await;
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_a_reorganisation_removed_is_sent_again_before_its_credits_are_taken_back() {
    for is_lost in [true, false] {
        let scene = Scene::new().await;
        let signed = scene.signed(1, SMALL, 1);
        assert_served(&scene.send("/quote", Some(&scene.key), Some(&signed)).await);
        let before = scene.record(&signed).await.unwrap();
        scene.node.ledger().reorganise(1, is_lost, scene.clock.now());
        assert_eq!(scene.received(), 0);
        for _ in 0..3 {
            scene.service.payments().settle(super::ledger::CHAIN).await.unwrap();
            assert_eq!(scene.balance(&scene.account).await, "0.03", "lost: {is_lost}");
        }
        assert_eq!(scene.record(&signed).await.unwrap(), before);
        scene.assert_credited_what_was_received().await;
        let ledger = scene.store.account_ledger(&scene.account, None, 10).await.unwrap().items;
        assert_eq!(ledger.len(), 1, "{ledger:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_that_a_reorganisation_removed_is_executed_anew_and_never_credited_twice() {
    for is_lost in [true, false] {
        let scene = Scene::new().await;
        let signed = scene.signed(1, SMALL, 1);
        assert_served(&scene.send("/quote", Some(&scene.key), Some(&signed)).await);
        let first = scene.record(&signed).await.unwrap().tx.unwrap();
        scene.node.ledger().reorganise(1, is_lost, scene.clock.now());
        scene.node.loses_sent.store(true, Ordering::SeqCst);
        scene.service.payments().settle(super::ledger::CHAIN).await.unwrap();
        scene.service.payments().settle(super::ledger::CHAIN).await.unwrap();
        scene.node.loses_sent.store(false, Ordering::SeqCst);
        assert_eq!(scene.balance(&scene.account).await, "-0.02", "lost: {is_lost}");
        assert_eq!(scene.record(&signed).await.unwrap().state, AuthorizationState::Pending);
        scene.keep_up().await;
        assert_eq!(scene.balance(&scene.account).await, "0.03", "lost: {is_lost}");
        let record = scene.record(&signed).await.unwrap();
        assert_eq!(record.state, AuthorizationState::Credited);
        // If it was only displaced, it may be mined again itself.
        assert!(record.tx != Some(first) || !is_lost);
        scene.assert_credited_what_was_received().await;
        let ledger = scene.store.account_ledger(&scene.account, None, 10).await.unwrap().items;
        let kinds: Vec<_> = ledger.iter().map(|entry| entry.kind).collect();
        assert!(kinds.contains(&LedgerKind::PaymentReversed) && kinds.len() == 3, "{kinds:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_expires_unmined_fails_and_its_place_is_used_up() {
    let scene = Scene::new().await;
    scene.node.loses_sent.store(true, Ordering::SeqCst);
    let signed = scene.signed(1, SMALL, 1);
    assert_eq!(scene.send("/quote", None, Some(&signed)).await.status(), 503);
    scene.wait(400).await;
    scene.node.loses_sent.store(false, Ordering::SeqCst);
    scene.wait(400).await;
    let state = scene.record(&signed).await.unwrap().state;
    assert!(matches!(state, AuthorizationState::Failed { .. }), "{state:?}");
    assert_eq!((scene.received(), scene.node.ledger().world().gas_mined), (0, 1));
    let response = scene.send("/quote", None, Some(&signed)).await;
    assert_eq!(refusal(&response), (402, "payment_refused".to_owned(), true));
    assert_served(&scene.send("/quote", None, Some(&scene.signed(2, SMALL, 1))).await);
}
