//! Charges whose callers proceed before the flush, or before the decision.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use metering_core::charging::{EarlyDecision, EarlyReceipt, ExpectedCharge, MeterEnd, RefusalKind};
use metering_core::{
    ApiKey, Charge, Clock, Credits, Decision, Meter, Refusal, RequestId, Store, StoreError, SystemClock,
    SystemRandomness,
};

use super::{Scene, config};
use crate::stopped_clock::StoppedClock;

fn charge(scene: &Scene) -> Charge {
    scene.one()
}

async fn accepted(scene: &Scene, charge: Charge) -> EarlyReceipt {
    match scene.meter.charge_early(charge).await {
        Ok(EarlyDecision::Accepted(receipt)) => receipt,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn charge_is_decided_before_its_flush() {
    let scene = Scene::new(10, config(10, 10), true).await;
    scene.store.hold_flushes(0);
    let early = accepted(&scene, charge(&scene)).await;
    assert!(!early.is_on_disk());
    assert_eq!(early.receipt().charged, Credits::BASE_CALL);
    let stats = scene.meter.stats();
    assert_eq!(stats.accepted.load(Ordering::Relaxed), 0, "it may still fail");
    scene.store.open_flushes(1);
    assert_eq!(early.on_disk().await.unwrap().charged, Credits::BASE_CALL);
    assert_eq!(stats.accepted.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn failed_flush_fails_the_charge() {
    let scene = Scene::new(10, config(10, 10), true).await;
    scene.store.hold_flushes(0);
    let early = accepted(&scene, charge(&scene)).await;
    scene.store.fail_next_flush(StoreError::Broken("fsync failed".to_owned()));
    scene.store.open_flushes(1);
    assert!(early.on_disk().await.unwrap_err().outcome_is_unknown());
    assert_eq!(scene.meter.ended().await, MeterEnd::StoreBroken);
    let stats = scene.meter.stats();
    assert_eq!((stats.accepted.load(Ordering::Relaxed), stats.failed_early.load(Ordering::Relaxed)), (0, 1));
}

#[tokio::test]
async fn charge_stands_after_its_early_caller_disconnects() {
    let scene = Scene::new(10, config(10, 10), true).await;
    scene.store.hold_flushes(0);
    drop(accepted(&scene, charge(&scene)).await);
    scene.store.open_flushes(1);
    assert_eq!(scene.meter.drain().await, MeterEnd::Drained);
    assert_eq!((scene.store.decided(), scene.base_calls_used().await), (1, 1));
}

#[tokio::test]
async fn requests_with_an_id_are_on_disk_and_refusals_have_no_receipt() {
    for scene in Scene::both(10, config(10, 10)).await {
        let keyed = charge(&scene).with_request_id(RequestId::parse("order-17").unwrap());
        assert!(accepted(&scene, keyed).await.is_on_disk());
        let mut unknown = charge(&scene);
        unknown.key = ApiKey::generate(&SystemRandomness).hash();
        let refused = scene.meter.charge_early(unknown).await.unwrap();
        assert!(matches!(refused, EarlyDecision::Refused(Refusal::UnknownKey)), "{refused:?}");
    }
}

#[tokio::test]
async fn store_without_a_thread_decides_before_its_first_request_of_a_key_starts() {
    let scene = Scene::new(10, config(10, 10), false).await;
    assert!(accepted(&scene, charge(&scene)).await.is_on_disk());
    assert_eq!(scene.meter.stats().accepted.load(Ordering::Relaxed), 1);
}

/// A scene whose store has no thread, and has charged the key just now. Further commits wait.
async fn charged_before() -> Scene {
    let mut scene = Scene::new(1, config(10, 10), false).await;
    let clock = Arc::new(StoppedClock(SystemClock.now()));
    scene.meter = Arc::new(Meter::start(Arc::clone(&scene.store) as _, clock, config(10, 10)));
    assert!(accepted(&scene, charge(&scene)).await.is_on_disk());
    scene
}

/// A request that starts before its commit is through.
async fn started(scene: &Scene) -> ExpectedCharge {
    match scene.meter.charge_early(charge(scene)).await {
        Ok(EarlyDecision::Expected(charge)) => charge,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn request_of_a_key_that_was_charged_just_now_starts_before_the_commit() {
    let scene = charged_before().await;
    let expected = started(&scene).await;
    assert_eq!((expected.account(), expected.amount()), (&scene.account, Credits::BASE_CALL));
    assert_eq!(scene.base_calls_used().await, 1, "the commit waits");
    scene.store.open(1);
    let Ok(Decision::Accepted(receipt)) = expected.await else { panic!("it is accepted") };
    assert_eq!((receipt.charged, scene.base_calls_used().await), (Credits::BASE_CALL, 2));
    let stats = scene.meter.stats();
    let counts =
        [&stats.accepted, &stats.refused_early, &stats.failed_early].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [2, 0, 0]);
}

#[tokio::test]
async fn charge_may_be_refused_after_its_request_started_and_the_next_one_waits() {
    let scene = charged_before().await;
    let expected = started(&scene).await;
    scene.store.revoke_account(&scene.account, SystemClock.now()).await.unwrap();
    scene.store.open(2);
    assert_eq!(expected.await.unwrap(), Decision::Refused(Refusal::UnknownKey));
    let stats = scene.meter.stats();
    assert_eq!((stats.refused_early.load(Ordering::Relaxed), stats.refused(RefusalKind::UnknownKey)), (1, 1));
    let next = scene.meter.charge_early(charge(&scene)).await.unwrap();
    assert!(matches!(next, EarlyDecision::Refused(Refusal::UnknownKey)), "{next:?}");
    assert_eq!((stats.refused_early.load(Ordering::Relaxed), scene.base_calls_used().await), (1, 1));
}

#[tokio::test]
async fn charge_may_fail_after_its_request_started_and_the_next_one_waits() {
    let scene = charged_before().await;
    let expected = started(&scene).await;
    scene.store.fail_next(StoreError::Unavailable("the disk is full".into()));
    scene.store.open(2);
    assert!(!expected.await.unwrap_err().outcome_is_unknown());
    assert_eq!(scene.meter.stats().failed_early.load(Ordering::Relaxed), 1);
    assert!(accepted(&scene, charge(&scene)).await.is_on_disk());
}

#[tokio::test]
async fn charge_stands_after_the_caller_that_started_its_request_disconnects() {
    let scene = charged_before().await;
    drop(started(&scene).await);
    scene.store.open(1);
    assert_eq!(scene.meter.drain().await, MeterEnd::Drained);
    assert_eq!(scene.base_calls_used().await, 2);
}
