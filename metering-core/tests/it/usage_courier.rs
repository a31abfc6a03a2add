//! The courier of usage on a store in memory: which totals are sent, retries, and no id twice.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use metering_core::events::{AttemptOutcome, UsageCourier, UsageCourierSettings, UsageSender};
use metering_core::store::UsageSinkStore;
use metering_core::{ApiKey, Charge, Clock, Credits, Service, SystemClock, Timestamp};
use metering_sqlite::SqliteStore;
use serde_json::Value;

/// Responds with these statuses, then with 204.
#[derive(Debug, Default)]
struct Recorder {
    statuses: Mutex<VecDeque<u16>>,
    batches: Mutex<Vec<Vec<Value>>>,
}

#[async_trait]
impl UsageSender for Recorder {
    async fn send(&self, batch: Vec<u8>) -> AttemptOutcome {
        self.batches.lock().unwrap().push(serde_json::from_slice(&batch).unwrap());
        AttemptOutcome::of_response(self.statuses.lock().unwrap().pop_front().unwrap_or(204), None)
    }
}

impl Recorder {
    fn take(&self) -> Vec<Vec<Value>> {
        std::mem::take(&mut self.batches.lock().unwrap())
    }
}

/// Ahead of the system's clock by some milliseconds.
#[derive(Debug, Default)]
struct Ahead(AtomicI64);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        let ahead = u64::try_from(self.0.load(Ordering::SeqCst)).unwrap();
        SystemClock.now().saturating_add(Duration::from_millis(ahead))
    }
}

struct Scene {
    store: Arc<SqliteStore>,
    service: Service,
    key: ApiKey,
    recorder: Arc<Recorder>,
    clock: Arc<Ahead>,
}

impl Scene {
    async fn new() -> Self {
        let store = Arc::new(SqliteStore::in_memory().unwrap());
        let service = Service::with_defaults(store.clone());
        let (_, key) = service.open_account("an-agent", "2".parse().unwrap()).await.unwrap();
        Self { store, service, key, recorder: Arc::default(), clock: Arc::default() }
    }

    fn courier(&self, batch: u32) -> UsageCourier {
        let (sink, source) = ("lake".to_owned(), "https://api.example/usage/lake".to_owned());
        let settings = UsageCourierSettings { sink, source, batch, interval: Duration::from_secs(60) };
        UsageCourier::new(self.store.clone(), self.recorder.clone(), self.clock.clone(), settings)
    }

    async fn charge(&self, path: &str) {
        self.service.charge(Charge::new(&self.key, Credits::BASE_CALL, "GET", path)).await.unwrap();
    }

    fn later(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

fn calls(batches: &[Vec<Value>]) -> i64 {
    let by_id: HashMap<_, _> = batches.iter().flatten().map(|event| (event["id"].to_string(), event)).collect();
    by_id.values().map(|event| event["data"]["calls"].as_i64().unwrap()).sum()
}

#[tokio::test]
async fn a_failed_batch_is_repeated_as_it_was_and_then_the_rest_follows() {
    let scene = Scene::new().await;
    scene.recorder.statuses.lock().unwrap().extend([500, 503]);
    let mut courier = scene.courier(100);
    scene.charge("/a").await;
    courier.work().await.unwrap();
    scene.charge("/a").await;
    courier.work().await.unwrap();
    assert_eq!(scene.recorder.batches.lock().unwrap().len(), 1, "it waits before it tries again");
    scene.later(5);
    courier.work().await.unwrap();
    scene.later(60);
    // Another process, as after a restart.
    scene.courier(100).work().await.unwrap();
    let batches = scene.recorder.take();
    assert_eq!(batches.len(), 4);
    assert_eq!((&batches[1], &batches[2]), (&batches[0], &batches[0]));
    assert_eq!((calls(&batches[..3]), calls(&batches)), (1, 2));
    assert_eq!(batches[3][0]["data"]["calls_total"], 2);
    assert!(!scene.store.usage_sinks().await.unwrap()[0].is_failing());
}

#[tokio::test]
async fn a_sink_gets_all_totals_in_batches_and_then_only_changes() {
    let scene = Scene::new().await;
    for number in 0..7 {
        scene.charge(&format!("/{number}")).await;
    }
    let mut courier = scene.courier(3);
    courier.work().await.unwrap();
    let batches = scene.recorder.take();
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    assert_eq!(calls(&batches), 7);
    courier.work().await.unwrap();
    assert_eq!(scene.recorder.take(), Vec::<Vec<Value>>::new(), "it is not due");
    scene.later(61);
    courier.work().await.unwrap();
    assert_eq!(scene.recorder.take(), Vec::<Vec<Value>>::new(), "nothing has changed");
    scene.charge("/3").await;
    scene.later(61);
    courier.work().await.unwrap();
    let batches = scene.recorder.take();
    assert_eq!((batches.len(), batches[0].len(), calls(&batches)), (1, 1, 1));
    assert_eq!(batches[0][0]["sequence"], "0000000002");
}
