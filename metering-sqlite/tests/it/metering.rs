//! Charges through a [`Meter`], which the writer thread takes by itself.

use std::sync::Arc;
use std::task::{Context, Waker};

use metering_core::{
    Charge, ClientSource, Credits, Decision, Meter, MeterConfig, MeterError, Store, SystemClock, UsageLine,
};
use metering_sqlite::SqliteStore;
use tokio::task::JoinSet;

use crate::scene::{account, database_path, new_account};

fn meter(store: &Arc<SqliteStore>) -> Arc<Meter> {
    Arc::new(Meter::start(Arc::clone(store) as Arc<dyn Store>, Arc::new(SystemClock), MeterConfig::default()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charges_of_two_meters_and_other_writes_take_turns() {
    let (_folder, file) = database_path();
    let store = Arc::new(SqliteStore::create(&file).unwrap());
    let (id, key) = account(&store, 1_000).await;
    let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
    let mut charges = JoinSet::new();
    for meter in [meter(&store), meter(&store)] {
        for _ in 0..400 {
            let (meter, charge) = (Arc::clone(&meter), Charge::of(key, Credits::BASE_CALL, line.clone()));
            charges.spawn(async move { meter.charge(charge).await });
        }
    }
    for _ in 0..20 {
        store.create_account(new_account()).await.unwrap();
    }
    while let Some(charged) = charges.join_next().await {
        assert!(matches!(charged.unwrap(), Ok(Decision::Accepted(_))));
    }
    let used = store.account(&id).await.unwrap().unwrap().totals.used;
    assert_eq!(used.atoms(), 800 * Credits::BASE_CALL.atoms());
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test]
async fn charges_of_a_drained_meter_are_on_disk_although_their_callers_have_gone() {
    let (_folder, file) = database_path();
    let store = Arc::new(SqliteStore::create(&file).unwrap());
    let (id, key) = account(&store, 1_000).await;
    let line = UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Direct };
    let meter = meter(&store);
    let charge = || Charge::of(key, Credits::BASE_CALL, line.clone());
    let mut charges: Vec<_> = (0..100).map(|_| Box::pin(meter.charge(charge()))).collect();
    for charge in &mut charges {
        // Queues it. The writer may be that fast that it is ready.
        let _ = charge.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    drop(charges);
    meter.drain().await;
    assert!(matches!(meter.charge(charge()).await, Err(MeterError::Closed)));
    drop((meter, store));
    let store = SqliteStore::open(&file).unwrap();
    let used = store.account(&id).await.unwrap().unwrap().totals.used;
    assert_eq!(used.atoms(), 100 * Credits::BASE_CALL.atoms());
}
