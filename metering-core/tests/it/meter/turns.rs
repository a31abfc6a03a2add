//! Postings in one turn of a thread, where `wake_together` runs.

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use metering_core::charging::{MeterEnd, wake_together};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use super::{Scene, accepted, config};

#[tokio::test]
async fn charges_of_one_turn_share_a_commit() {
    tokio::spawn(wake_together());
    yield_now().await;
    for scene in Scene::both(1, config(100, 100)).await {
        let charges: Vec<_> = (0..10).map(|_| scene.charge()).collect();
        for charge in charges {
            accepted(charge.await.unwrap());
        }
        assert_eq!(scene.store.batches(), [10]);
    }
}

/// A meter whose only charge was posted on a thread that stops running: the turn does not end. First the meter's
/// runtime, with its clock stopped or not, then the thread's.
fn posted_on_a_stopped_thread(is_paused: bool) -> (Scene, Runtime, Runtime) {
    let serving = Builder::new_current_thread().enable_all().start_paused(is_paused).build().unwrap();
    let stopped = Builder::new_current_thread().enable_all().build().unwrap();
    let scene = serving.block_on(Scene::new(1, config(10, 10), true));
    stopped.spawn(wake_together());
    stopped.block_on(async {
        yield_now().await;
        let charging = pin!(scene.meter.charge(scene.one()));
        assert!(charging.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    });
    assert_eq!((scene.meter.queued(), scene.store.batches().len()), (1, 0));
    (scene, serving, stopped)
}

#[test]
fn drain_commits_what_was_posted_in_a_turn_that_does_not_end() {
    let (scene, serving, _stopped) = posted_on_a_stopped_thread(false);
    serving.block_on(async {
        assert_eq!(scene.meter.drain().await, MeterEnd::Drained);
        assert_eq!(scene.base_calls_used().await, 1);
    });
}

#[test]
fn charge_of_a_turn_that_does_not_end_is_committed_a_second_later() {
    let (scene, serving, _stopped) = posted_on_a_stopped_thread(true);
    serving.block_on(async {
        // The meter's task has not run yet, and waits from now.
        yield_now().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        scene.settled(1, 0).await;
    });
}
