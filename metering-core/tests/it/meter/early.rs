//! Charges whose callers go ahead before the flush.

use std::sync::atomic::Ordering;

use metering_core::charging::{EarlyDecision, EarlyReceipt, MeterEnd};
use metering_core::{
    ApiKey, Charge, ClientSource, Credits, Refusal, RequestId, StoreError, SystemRandomness, UsageLine,
};

use super::{Scene, config};

fn charge(scene: &Scene) -> Charge {
    let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
    Charge::of(scene.key, Credits::BASE_CALL, line)
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
async fn store_without_a_thread_has_every_charge_on_disk() {
    let scene = Scene::new(10, config(10, 10), false).await;
    assert!(accepted(&scene, charge(&scene)).await.is_on_disk());
    assert_eq!(scene.meter.stats().accepted.load(Ordering::Relaxed), 1);
}
