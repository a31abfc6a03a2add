//! Races for holds: each is settled once, no matter which nodes try and what happens to their responses.

use std::sync::Arc;
use std::time::Duration;

use metering_core::charging::{Hold, HoldAction, SettleReason};
use metering_core::store::HoldStore;
use metering_core::{Clock, Meter, MeterConfig, Refusal, SystemClock};
use tokio::task::JoinSet;

use crate::hold_scene::{AMOUNT, FALLBACK, GRANT, LEASE, Scene, capture, later, open};
use crate::lost_commits::NOON;

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_settle_a_hold_once() {
    let Some(scene) = Scene::new(GRANT, 8).await.map(Arc::new) else { return };
    let mut captured = 0;
    for round in 0..30 {
        let id = scene.open(if round % 2 == 0 { &scene.node } else { &scene.other }).await;
        let now = later(LEASE);
        let actions = [capture(4), HoldAction::Expire, HoldAction::CaptureFallback, HoldAction::Release, capture(6)];
        let mut tasks = JoinSet::new();
        for (place, action) in actions.into_iter().cycle().take(10).enumerate() {
            let scene = Arc::clone(&scene);
            tasks.spawn(async move {
                let node = if (place + round) % 2 == 0 { &scene.node } else { &scene.other };
                scene.update(node, id, action, now).await
            });
        }
        let results = tasks.join_all().await;
        assert_eq!(results.iter().filter(|result| result.changed).count(), 1, "round {round}");
        let stored = scene.node.hold(&id).await.unwrap().unwrap();
        assert!(stored.settled.is_some() && results.iter().all(|result| result.hold == stored), "{results:?}");
        captured += stored.settled.unwrap().captured.atoms();
    }
    assert_eq!(scene.amounts().await, [GRANT - captured, 0, captured]);
    scene.verify().await;
}

/// A renewal changes only the hold, and no balance.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_and_the_end_of_the_lease_exclude_each_other() {
    let Some(scene) = Scene::new(GRANT, 4).await else { return };
    for round in 0..60 {
        let id = scene.open(&scene.node).await;
        let until = later(3 * LEASE);
        let renewal = scene.update(&scene.node, id, HoldAction::Renew { until }, NOON);
        let expiry = scene.update(&scene.other, id, HoldAction::Expire, later(LEASE));
        let (renewed, expired) = match round % 2 {
            0 => tokio::join!(renewal, expiry),
            _ => {
                let (expired, renewed) = tokio::join!(expiry, renewal);
                (renewed, expired)
            }
        };
        assert_ne!(renewed.changed, expired.changed, "{renewed:?} {expired:?}");
        let Hold { expires_at, settled, .. } = scene.other.hold(&id).await.unwrap().unwrap();
        let reason = settled.map(|settled| settled.reason);
        if expired.changed {
            assert_eq!((expires_at, reason), (later(LEASE), Some(SettleReason::Expiry)));
        } else {
            assert_eq!((expires_at, reason), (until, None));
            assert!(scene.update(&scene.other, id, HoldAction::Release, later(LEASE)).await.changed);
        }
    }
    // In order, so that both outcomes are seen.
    let id = scene.open(&scene.node).await;
    let until = later(2 * LEASE);
    assert!(scene.update(&scene.node, id, HoldAction::Renew { until }, NOON).await.changed);
    assert!(!scene.update(&scene.other, id, HoldAction::Expire, later(LEASE)).await.changed);
    assert!(scene.update(&scene.other, id, HoldAction::Expire, until).await.changed);
    assert!(!scene.update(&scene.node, id, HoldAction::Renew { until: later(4 * LEASE) }, NOON).await.changed);
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_credits_are_held_once() {
    // 64 connections, of two nodes. The last hold is not covered in full.
    let Some(scene) = Scene::new(20 * AMOUNT + AMOUNT - 1, 32).await.map(Arc::new) else { return };
    let mut tasks = JoinSet::new();
    for place in 0..64 {
        let scene = Arc::clone(&scene);
        tasks.spawn(async move {
            let node = if place % 2 == 0 { &scene.node } else { &scene.other };
            open(node, &scene.key, NOON).await
        });
    }
    let (mut opened, mut refused) = (Vec::new(), 0);
    for result in tasks.join_all().await {
        match result {
            Ok(receipt) => opened.push(receipt.hold.unwrap().id),
            Err(Refusal::InsufficientCredits { .. }) => refused += 1,
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    assert_eq!((opened.len(), refused), (20, 44));
    assert_eq!(scene.amounts().await, [AMOUNT - 1, 20 * AMOUNT, 0]);
    scene.verify().await;
    for id in opened {
        scene.update(&scene.other, id, capture(AMOUNT), NOON).await;
    }
    assert_eq!(scene.amounts().await, [AMOUNT - 1, 0, 20 * AMOUNT]);
    scene.verify().await;
}

/// The lease of a node that died ends, and the meter of another node settles its hold.
#[tokio::test(flavor = "multi_thread")]
async fn holds_of_a_dead_node_are_settled_by_another_one() {
    let Some(scene) = Scene::new(GRANT, 4).await else { return };
    let now = SystemClock.now();
    let dead = open(&scene.node, &scene.key, now.saturating_sub(LEASE)).await.unwrap().hold.unwrap().id;
    let alive = open(&scene.node, &scene.key, now).await.unwrap().hold.unwrap().id;
    let store = Arc::new(scene.other.clone());
    let meter = Meter::start(store, Arc::new(SystemClock), MeterConfig::default());
    let settled = async {
        loop {
            let hold = scene.node.hold(&dead).await.unwrap().unwrap();
            match hold.settled {
                Some(settled) => break settled,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let settled = tokio::time::timeout(Duration::from_secs(60), settled).await.expect("a meter settles it");
    assert_eq!((settled.reason, settled.captured.atoms()), (SettleReason::Expiry, FALLBACK));
    assert_eq!(scene.node.hold(&alive).await.unwrap().unwrap().settled, None);
    // Its node was only slow: what it reports comes too late.
    assert!(!scene.update(&scene.node, dead, capture(9), now).await.changed);
    assert_eq!(scene.amounts().await, [GRANT - FALLBACK - AMOUNT, AMOUNT, FALLBACK]);
    meter.drain().await;
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_cuts_around_commits_settle_every_hold_once() {
    let Some(scene) = Scene::new(GRANT, 4).await.map(Arc::new) else { return };
    scene.link.cut_commits();
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let scene = Arc::clone(&scene);
        tasks.spawn(async move {
            for _ in 0..8 {
                let id = scene.open(&scene.node).await;
                let renewal = HoldAction::Renew { until: later(2 * LEASE) };
                assert!(scene.update(&scene.node, id, renewal, NOON).await.changed);
                // Each result is that of this commit, although its response may be lost.
                let updated = scene.update(&scene.node, id, capture(4), NOON).await;
                assert!(updated.changed, "{updated:?}");
            }
        });
    }
    tasks.join_all().await;
    assert!(scene.link.cuts() > 20, "{}", scene.link.cuts());
    assert_eq!(scene.amounts().await, [GRANT - 4 * 8 * 4, 0, 4 * 8 * 4]);
    assert_eq!(scene.other.open_holds(&scene.id, 10).await.unwrap(), []);
    scene.verify().await;
}
