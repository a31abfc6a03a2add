//! Several lanes: concurrent commits, with each account in one lane.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::charging::MeterEnd;
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::{
    AccountId, ApiKey, Charge, ClientSource, Clock, Credits, Decision, Meter, MeterError, NewAccount, Store,
    StoreError, SystemClock, SystemRandomness, UsageLine,
};
use tokio::task::JoinHandle;

use super::gated::Gated;
use super::{accepted, config};

const LANES: usize = 4;
/// Enough accounts for each lane to have many.
const ACCOUNTS: usize = 512;

struct Scene {
    store: Arc<Gated>,
    meter: Arc<Meter>,
    keys: Vec<KeyHash>,
}

impl Scene {
    async fn new(commits: usize) -> Self {
        let store = Arc::new(Gated::passing(commits).with_lanes(LANES));
        let mut keys = Vec::new();
        for _ in 0..ACCOUNTS {
            let key = ApiKey::generate(&SystemRandomness).hash();
            let id = AccountId::generate(&SystemRandomness);
            let mut new = NewAccount::new(id, "agent".parse().unwrap(), key, SystemClock.now());
            new.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_whole(1).unwrap(), "")];
            store.create_account(new).await.unwrap();
            keys.push(key);
        }
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let meter = Arc::new(Meter::start(shared, Arc::new(SystemClock), config(5_000, 5_000)));
        Self { store, meter, keys }
    }

    /// Charges each account once.
    fn charge_all(&self) -> Vec<JoinHandle<Result<Decision, MeterError>>> {
        let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
        let charge = |key: &KeyHash| {
            let (key, line) = (*key, line.clone());
            let charge = Charge::of(key, Credits::BASE_CALL, line);
            let meter = Arc::clone(&self.meter);
            tokio::spawn(async move { meter.charge(charge).await })
        };
        self.keys.iter().map(charge).collect()
    }

    /// Waits until `charges` charges are in a commit or wait for one, and the meter has had many turns since.
    async fn settled(&self, charges: usize) {
        let settled = async {
            let mut turns = 0;
            while turns < 100 {
                let arrived = self.store.batches().iter().sum::<usize>() + self.meter.queued();
                turns = if arrived == charges { turns + 1 } else { 0 };
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), settled).await.expect("the meter settles");
    }
}

#[tokio::test]
async fn commits_run_concurrently_and_an_account_keeps_its_lane() {
    let scene = Scene::new(0).await;
    let mut charges = scene.charge_all();
    scene.settled(ACCOUNTS).await;
    let in_progress = scene.store.batches().len();
    assert!((2..=LANES).contains(&in_progress), "{in_progress}");
    charges.extend(scene.charge_all());
    scene.settled(2 * ACCOUNTS).await;
    assert_eq!(scene.store.batches().len(), in_progress, "charges that wait for their lane start no other commit");
    scene.store.open(100);
    for charge in charges {
        accepted(charge.await.unwrap());
    }
    assert_eq!(scene.meter.drain().await, MeterEnd::Drained);
}

#[tokio::test]
async fn a_store_that_breaks_in_one_lane_ends_all() {
    let scene = Scene::new(0).await;
    let charges = scene.charge_all();
    scene.settled(ACCOUNTS).await;
    scene.store.fail_next(StoreError::Broken("fsync failed".to_owned()));
    scene.store.open(100);
    assert_eq!(scene.meter.ended().await, MeterEnd::StoreBroken);
    for charge in charges {
        // Charges in the broken lane get an error; the others were committed or rejected.
        let _ = charge.await.unwrap();
    }
    for charge in scene.charge_all() {
        assert!(matches!(charge.await.unwrap(), Err(MeterError::Closed)), "no further charge is accepted");
    }
}
