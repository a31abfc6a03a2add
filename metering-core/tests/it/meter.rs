//! The charge path: how batches form, how a full queue is handled, and how the meter ends.

mod early;
pub(crate) mod gated;
mod holds;
mod lanes;
mod turns;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use gated::Gated;
use metering_core::access::KeyHash;
use metering_core::charging::MeterEnd;
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::{
    AccountId, ApiKey, Charge, ClientSource, Clock, Credits, Decision, Meter, MeterConfig, MeterError, NewAccount,
    RateLimits, Receipt, Store, StoreError, SystemClock, SystemRandomness, UsageLine,
};
use tokio::task::JoinHandle;

struct Scene {
    store: Arc<Gated>,
    meter: Arc<Meter>,
    account: AccountId,
    key: KeyHash,
}

impl Scene {
    /// Two of the same: one store commits when it is called, the other on a thread of its own.
    async fn both(commits: usize, config: MeterConfig) -> [Self; 2] {
        [Self::new(commits, config, false).await, Self::new(commits, config, true).await]
    }

    async fn new(commits: usize, config: MeterConfig, has_thread: bool) -> Self {
        let store = Arc::new(Gated::passing(commits).with_thread(has_thread));
        let (account, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness).hash());
        let mut new = NewAccount::new(account.clone(), "agent".parse().unwrap(), key, SystemClock.now());
        new.limits = RateLimits::NONE;
        let amount = Credits::from_whole(1).unwrap();
        new.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, amount, "")];
        store.create_account(new).await.unwrap();
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let meter = Arc::new(Meter::start(shared, Arc::new(SystemClock), config));
        Self { store, meter, account, key }
    }

    /// A charge of the account, not posted yet.
    fn one(&self) -> Charge {
        let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
        Charge::of(self.key, Credits::BASE_CALL, line)
    }

    fn charge(&self) -> JoinHandle<Result<Decision, MeterError>> {
        let (meter, charge) = (Arc::clone(&self.meter), self.one());
        tokio::spawn(async move { meter.charge(charge).await })
    }

    /// Waits until the store has received `commits` commits and `queued` charges are waiting.
    async fn settled(&self, commits: usize, queued: usize) {
        let settled = async {
            while self.store.batches().len() != commits || self.meter.queued() != queued {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), settled).await.expect("the meter settles");
    }

    async fn base_calls_used(&self) -> i64 {
        let account = self.store.account(&self.account).await.unwrap().unwrap();
        account.totals.used.atoms() / Credits::BASE_CALL.atoms()
    }
}

fn config(queue: usize, batch: usize) -> MeterConfig {
    MeterConfig { queue: NonZeroUsize::new(queue).unwrap(), batch: NonZeroUsize::new(batch).unwrap() }
}

fn accepted(outcome: Result<Decision, MeterError>) -> Receipt {
    match outcome {
        Ok(Decision::Accepted(receipt)) => receipt,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn charges_during_a_commit_share_the_next() {
    for scene in Scene::both(0, config(100, 8)).await {
        let first = scene.charge();
        scene.settled(1, 0).await;
        let rest: Vec<_> = (0..10).map(|_| scene.charge()).collect();
        scene.settled(1, 10).await;
        scene.store.open(3);
        accepted(first.await.unwrap());
        for charge in rest {
            accepted(charge.await.unwrap());
        }
        assert_eq!(scene.store.batches(), [1, 8, 2], "one alone, a full batch, and the rest");
        assert_eq!(scene.base_calls_used().await, 11);
    }
}

#[tokio::test]
async fn full_queue_rejects_charges_but_accepts_refunds() {
    for scene in Scene::both(1, config(2, 1)).await {
        let receipt = accepted(scene.charge().await.unwrap());
        let in_progress = scene.charge();
        scene.settled(2, 0).await;
        let waiting = [scene.charge(), scene.charge()];
        scene.settled(2, 2).await;
        assert!(matches!(scene.charge().await.unwrap(), Err(MeterError::Overloaded)));
        let meter = Arc::clone(&scene.meter);
        let refund = tokio::spawn(async move { meter.refund(receipt).await });
        scene.store.open(10);
        accepted(in_progress.await.unwrap());
        for charge in waiting {
            accepted(charge.await.unwrap());
        }
        assert!(refund.await.unwrap().unwrap().is_some(), "the refund waits in the queue");
        assert_eq!(scene.base_calls_used().await, 3, "four charges, one of them refunded");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_commit_rejects_charges_and_delays_refunds() {
    // A paused clock does not wait for a thread, so this is with the meter's task alone.
    let scene = Scene::new(1, config(10, 1), false).await;
    let receipt = accepted(scene.charge().await.unwrap());
    let stuck = scene.charge();
    scene.settled(2, 0).await;
    let meter = Arc::clone(&scene.meter);
    let refund = tokio::spawn(async move { meter.refund(receipt).await });
    let started_at = tokio::time::Instant::now();
    // One posting that already waits, and one that arrives after the commit counts as slow.
    for _ in 0..2 {
        let refused = scene.charge().await.unwrap();
        assert!(matches!(&refused, Err(MeterError::Store(_))), "{refused:?}");
        assert!(started_at.elapsed() < Duration::from_secs(11), "{:?}", started_at.elapsed());
    }
    assert!(started_at.elapsed() >= Duration::from_secs(9), "{:?}", started_at.elapsed());
    assert!(!stuck.is_finished() && !refund.is_finished(), "their outcomes are not known yet");
    scene.store.open(10);
    accepted(stuck.await.unwrap());
    assert!(refund.await.unwrap().unwrap().is_some(), "the refund is recorded");
    accepted(scene.charge().await.unwrap());
    assert_eq!(scene.base_calls_used().await, 2, "three charges, one of them refunded");
    assert_eq!(scene.meter.drain().await, MeterEnd::Drained);
}

#[tokio::test]
async fn charge_stands_after_its_caller_disconnects() {
    for scene in Scene::both(0, config(10, 10)).await {
        let gone = scene.charge();
        scene.settled(1, 0).await;
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        scene.store.open(1);
        assert_eq!(scene.meter.drain().await, MeterEnd::Drained);
        assert_eq!(scene.base_calls_used().await, 1);
    }
}

#[tokio::test]
async fn draining_finishes_accepted_requests_and_rejects_new_ones() {
    for scene in Scene::both(0, config(10, 2)).await {
        let mut charges = vec![scene.charge()];
        scene.settled(1, 0).await;
        charges.extend((0..4).map(|_| scene.charge()));
        scene.settled(1, 4).await;
        let meter = Arc::clone(&scene.meter);
        let drained = tokio::spawn(async move { meter.drain().await });
        scene.store.open(5);
        assert_eq!(drained.await.unwrap(), MeterEnd::Drained);
        for charge in charges {
            accepted(charge.await.unwrap());
        }
        assert!(matches!(scene.charge().await.unwrap(), Err(MeterError::Closed)));
        assert_eq!(scene.base_calls_used().await, 5);
    }
}

#[tokio::test]
async fn unavailable_store_charges_nothing_and_may_recover() {
    for scene in Scene::both(10, config(10, 10)).await {
        scene.store.fail_next(StoreError::Unavailable("the disk is full".into()));
        assert_eq!(scene.meter.last_failure(), None);
        let failed = scene.charge().await.unwrap();
        assert!(matches!(&failed, Err(error @ MeterError::Store(_)) if !error.outcome_is_unknown()), "{failed:?}");
        assert!(scene.meter.last_failure().is_some());
        accepted(scene.charge().await.unwrap());
        assert_eq!(scene.meter.last_failure(), None);
        assert_eq!(scene.base_calls_used().await, 1);
    }
}

#[tokio::test]
async fn only_charges_of_a_started_commit_have_unknown_outcomes() {
    for scene in Scene::both(0, config(10, 1)).await {
        let in_progress = scene.charge();
        scene.settled(1, 0).await;
        let waiting = [scene.charge(), scene.charge()];
        scene.settled(1, 2).await;
        scene.store.fail_next(StoreError::Broken("fsync failed".to_owned()));
        scene.store.open(1);
        let failed = in_progress.await.unwrap().unwrap_err();
        assert!(failed.outcome_is_unknown(), "{failed}");
        for charge in waiting {
            let refused = charge.await.unwrap().unwrap_err();
            assert!(matches!(refused, MeterError::Closed) && !refused.outcome_is_unknown(), "{refused}");
        }
        assert_eq!(scene.meter.ended().await, MeterEnd::StoreBroken);
    }
}

#[tokio::test]
async fn an_outcome_that_is_unknown_need_not_end_the_meter() {
    for scene in Scene::both(10, config(10, 10)).await {
        scene.store.fail_next(StoreError::OutcomeUnknown("EIO at the commit".to_owned()));
        assert!(scene.charge().await.unwrap().unwrap_err().outcome_is_unknown());
        accepted(scene.charge().await.unwrap());
        scene.store.fail_next(StoreError::Closed("the file was deleted".to_owned()));
        assert!(!scene.charge().await.unwrap().unwrap_err().outcome_is_unknown());
        assert_eq!(scene.meter.ended().await, MeterEnd::StoreBroken);
    }
}

#[tokio::test]
async fn a_broken_store_ends_the_meter() {
    for scene in Scene::both(10, config(10, 10)).await {
        scene.store.fail_next(StoreError::Broken("fsync failed".to_owned()));
        assert!(matches!(scene.charge().await.unwrap(), Err(MeterError::Store(_))));
        assert_eq!(scene.meter.ended().await, MeterEnd::StoreBroken);
        assert!(matches!(scene.charge().await.unwrap(), Err(MeterError::Closed)), "no further charge is accepted");
    }
}
