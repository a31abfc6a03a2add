//! Holds that a meter keeps: captured once, renewed while their request is served, and settled when it is no longer
//! served.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metering_core::charging::{Hold, HoldDecision, HoldGuard, HoldId, HoldTerms, MeterEnd, SettleReason};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::{HoldStore, StoreClock};
use metering_core::{
    AccountId, ApiKey, Charge, Clock, Credits, Meter, MeterConfig, MeterError, NewAccount, Store, StoreError,
    SystemRandomness, Timestamp,
};
use tokio::sync::Semaphore;

use super::gated::Gated;

const LEASE: Duration = Duration::from_secs(20);

/// A clock that follows the runtime's time, which a test can pause.
#[derive(Debug)]
struct RuntimeClock(tokio::time::Instant, AtomicU64);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        let ahead = Duration::from_millis(self.1.load(Ordering::Relaxed));
        Timestamp::from_unix_millis(1_795_262_400_000).saturating_add(self.0.elapsed() + ahead)
    }
}

fn atoms(atoms: i64) -> Credits {
    Credits::from_atoms(atoms)
}

struct Scene {
    store: Arc<Gated>,
    clock: Arc<RuntimeClock>,
    meter: Meter,
    account: AccountId,
    key: ApiKey,
}

impl Scene {
    /// An account with 100 atoms, and a meter for few requests.
    async fn new() -> Self {
        let store = Arc::new(Gated::passing(Semaphore::MAX_PERMITS / 2));
        let clock = Arc::new(RuntimeClock(tokio::time::Instant::now(), AtomicU64::new(0)));
        let (account, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
        let mut new = NewAccount::new(account.clone(), "agent".parse().unwrap(), key.hash(), clock.now());
        new.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, atoms(100), "")];
        store.create_account(new).await.unwrap();
        let meter = Self::meter(&store, &clock);
        Self { store, clock, meter, account, key }
    }

    /// Another meter on the same store, as of another process.
    fn meter(store: &Arc<Gated>, clock: &Arc<RuntimeClock>) -> Meter {
        let two = NonZeroUsize::new(2).unwrap();
        let config = MeterConfig { queue: two, batch: two };
        Meter::start(Arc::clone(store) as Arc<dyn Store>, Arc::clone(clock) as Arc<dyn Clock>, config)
    }

    async fn hold(&self, amount: i64) -> HoldGuard {
        let terms = HoldTerms::new(&SystemRandomness, LEASE, atoms(7));
        match self.meter.hold(Charge::new(&self.key, atoms(amount), "POST", "/chat"), terms).await.unwrap() {
            HoldDecision::Held(guard) => guard,
            HoldDecision::Refused(refusal) => panic!("{refusal:?}"),
        }
    }

    async fn read(&self, id: HoldId) -> Hold {
        self.store.hold(&id).await.unwrap().expect("the hold exists")
    }

    /// Balance, held and used atoms.
    async fn amounts(&self) -> (i64, i64, i64) {
        let totals = self.store.account(&self.account).await.unwrap().unwrap().totals;
        (totals.balance.atoms(), totals.held.atoms(), totals.used.atoms())
    }

    /// Waits until a hold is settled, and returns why.
    async fn settled(&self, id: HoldId) -> SettleReason {
        let settled = async {
            loop {
                if let Some(settled) = self.read(id).await.settled {
                    return settled.reason;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(600), settled).await.expect("the hold is settled")
    }
}

fn id(guard: &HoldGuard) -> HoldId {
    guard.receipt().hold.expect("it is a hold").id
}

#[tokio::test]
async fn a_guard_settles_its_hold_once() {
    let scene = Scene::new().await;
    let captured = scene.hold(60).await.capture(atoms(20)).await.unwrap();
    assert_eq!((captured.changed, captured.balance), (true, atoms(80)));
    assert_eq!(scene.hold(60).await.capture_in_full(atoms(75)).await.unwrap().balance, atoms(5));
    assert_eq!(scene.hold(5).await.release().await.unwrap().balance, atoms(5));
    assert_eq!(scene.hold(5).await.capture_fallback().await.unwrap().balance, atoms(0));
    assert_eq!(scene.amounts().await, (0, 0, 100));
    assert_eq!((scene.meter.open_holds(), scene.meter.queued()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_captures_the_fallback() {
    let scene = Scene::new().await;
    for round in 1..=4 {
        let guard = scene.hold(60).await;
        let id = id(&guard);
        assert_eq!(scene.meter.open_holds(), 1);
        drop(guard);
        assert_eq!(scene.settled(id).await, SettleReason::NoReport);
        assert_eq!(scene.amounts().await, (100 - 7 * round, 0, 7 * round));
        // Postings without a permit return none.
        assert_eq!((scene.meter.open_holds(), scene.meter.queued()), (0, 0));
    }
    assert_eq!(scene.meter.drain().await, MeterEnd::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_capture_waits_for_an_unavailable_store() {
    let scene = Scene::new().await;
    let guard = scene.hold(60).await;
    scene.store.fail_next(StoreError::Unavailable("the disk is full".into()));
    let captured = guard.capture(atoms(20)).await.unwrap();
    assert_eq!((captured.changed, captured.balance), (true, atoms(80)));
    let guard = scene.hold(60).await;
    scene.store.fail_next(StoreError::OutcomeUnknown("EIO at the commit".to_owned()));
    assert!(guard.capture(atoms(20)).await.unwrap().changed);
    assert_eq!(scene.amounts().await, (60, 0, 40));
}

#[tokio::test(start_paused = true)]
async fn a_capture_goes_on_after_its_caller_is_gone() {
    let scene = Scene::new().await;
    let guard = scene.hold(60).await;
    let id = id(&guard);
    scene.store.fail_next(StoreError::Unavailable("the disk is full".into()));
    let capture = tokio::time::timeout(Duration::from_millis(10), guard.capture(atoms(20))).await;
    assert!(capture.is_err(), "the first attempt failed");
    assert_eq!(scene.settled(id).await, SettleReason::Report);
    assert_eq!(scene.amounts().await, (80, 0, 20));
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_while_the_request_is_served() {
    let scene = Scene::new().await;
    let other = Scene::meter(&scene.store, &scene.clock);
    let guard = scene.hold(60).await;
    let first = scene.read(id(&guard)).await.expires_at;
    for _ in 0..20 {
        tokio::time::sleep(LEASE / 2).await;
        let hold = scene.read(id(&guard)).await;
        assert_eq!(hold.settled, None);
        assert!(hold.expires_at > scene.clock.now(), "the lease has not ended");
    }
    assert!(scene.read(id(&guard)).await.expires_at > first.saturating_add(8 * LEASE));
    assert!(guard.capture(atoms(20)).await.unwrap().changed);
    assert_eq!(other.stats().expired_holds.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_a_dead_process_expires() {
    let scene = Scene::new().await;
    let guard = scene.hold(60).await;
    let id = id(&guard);
    // Its process ends: nobody renews the lease or drops the guard.
    std::mem::forget(guard);
    let Scene { store, clock, meter, account, key } = scene;
    let _ = tokio::time::timeout(Duration::from_secs(60), meter.drain())
        .await
        .expect("a drain gives up waiting for guards");
    let meter = Scene::meter(&store, &clock);
    let scene = Scene { store, clock, meter, account, key };
    assert_eq!(scene.settled(id).await, SettleReason::Expiry);
    assert_eq!(scene.amounts().await, (93, 0, 7));
    assert_eq!(scene.meter.stats().expired_holds.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_broken_store_leaves_the_hold_to_its_lease() {
    let scene = Scene::new().await;
    let (guard, dropped) = (scene.hold(30).await, scene.hold(30).await);
    scene.store.fail_next(StoreError::Broken("fsync failed".to_owned()));
    let failed = guard.capture(atoms(20)).await.unwrap_err();
    assert!(matches!(failed, MeterError::Closed | MeterError::Store(_)), "{failed}");
    assert_eq!(scene.meter.ended().await, MeterEnd::StoreBroken);
    drop(dropped);
    assert_eq!(scene.amounts().await, (40, 60, 0));
    assert_eq!(scene.meter.open_holds(), 0);
}

/// A node whose clock is an hour ahead, on a store whose clock is right.
#[tokio::test(start_paused = true)]
async fn a_node_with_a_wrong_clock_settles_no_holds_of_others() {
    let scene = Scene::new().await;
    scene.store.set_clock(Arc::clone(&scene.clock) as Arc<dyn Clock>);
    let guard = scene.hold(60).await;
    let ahead = Arc::new(RuntimeClock(scene.clock.0, AtomicU64::new(3_600_000)));
    let wrong = Scene::meter(&scene.store, &ahead);
    let following = Arc::new(StoreClock::new(Arc::clone(&ahead) as Arc<dyn Clock>));
    following.sync(&*scene.store).await.unwrap();
    let config = MeterConfig { queue: NonZeroUsize::MIN, batch: NonZeroUsize::MIN };
    let right = Meter::start(Arc::clone(&scene.store) as _, Arc::clone(&following) as _, config);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(following.now(), scene.clock.now(), "the store's clock, continued with the monotonic one");
    assert_eq!(scene.read(id(&guard)).await.settled, None, "its lease is renewed by its own process");
    assert_eq!(guard.capture(atoms(20)).await.unwrap().balance, atoms(80));
    drop((wrong, right));
}
