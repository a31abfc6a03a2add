//! Senders and stores that fail, couriers that end, and several couriers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Level, Metadata, Subscriber, span};

use super::*;
use crate::stopped_clock::StoppedClock;

/// Waits until this many messages were sent, with or without a response.
async fn sent(sender: &Recorder, count: usize) {
    let all = async {
        while sender.sent().len() < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("the messages are sent");
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_panics_or_hangs_has_failed() {
    let sender = Recorder::new([]);
    let scene = Scene::new(&sender).await;
    sender.panics.store(true, Ordering::SeqCst);
    let panicking = scene.webhook("https://panicking.example/").await;
    scene.test(&panicking).await;
    scene.attempts(1).await;
    sender.permits.forget_permits(Semaphore::MAX_PERMITS);
    let hanging = scene.webhook("https://hanging.example/").await;
    scene.test(&hanging).await;
    scene.attempts(2).await;
    assert_eq!((scene.stats.delivered(), scene.stats.failed()), (0, 2));
    let deliveries = scene.store.deliveries(None, DeliveryFilter::default(), None, 9).await.unwrap().items;
    let failed: Vec<_> = deliveries.iter().rev().map(|delivery| delivery.progress.last.clone().unwrap()).collect();
    let errors: Vec<_> = failed.iter().map(|last| last.error.as_deref().unwrap()).collect();
    assert_eq!(errors, ["the service failed to send it", "there was no response in time"]);
    assert_eq!(scene.states().await, [DeliveryState::Pending; 2], "they are retried, and parked in the end");
    scene.stop().await;
}

#[tokio::test]
async fn an_attempt_that_was_in_progress_at_a_resend_does_not_count() {
    let sender = Recorder::new([failed(500)]);
    sender.permits.forget_permits(Semaphore::MAX_PERMITS);
    let scene = Scene::new(&sender).await;
    let webhook = scene.webhook("https://a.example/").await;
    scene.test(&webhook).await;
    sent(&sender, 1).await;
    let only =
        || async { scene.store.deliveries(None, DeliveryFilter::default(), None, 9).await.unwrap().items.remove(0) };
    let id = only().await.id.get().to_string();
    scene.service.webhooks().resend(Some(&scene.key), &webhook, &id).await.unwrap();
    sent(&sender, 2).await;
    assert_eq!(sender.at_once.load(Ordering::SeqCst), 2, "the same event, twice at the same time");
    sender.permits.add_permits(1);
    scene.attempts(1).await;
    let progress = only().await.progress;
    assert_eq!((progress.state, progress.attempts, progress.last), (DeliveryState::Pending, 2, None));
    sender.permits.add_permits(1);
    scene.attempts(2).await;
    assert_eq!(scene.states().await, [DeliveryState::Delivered]);
    assert_eq!((sender.sent()[0].id.clone(), sender.sent().len()), (sender.sent()[1].id.clone(), 2));
    scene.stop().await;
}

#[tokio::test]
async fn two_couriers_on_one_store_send_each_event_once_and_in_order() {
    const EVENTS: usize = 20;
    let (store, sender) = (store(), Recorder::new([]));
    let settings =
        || CourierSettings { poll: Duration::from_millis(1), max_in_flight: 2, ..CourierSettings::default() };
    let scene = Scene::on(store.clone(), &sender, settings()).await;
    let other = Scene::on(store, &sender, settings()).await;
    let mut ids = BTreeMap::<String, Vec<String>>::new();
    for name in ["a", "b", "c"] {
        let url = format!("https://{name}.example/");
        let webhook = scene.webhook(&url).await;
        for _ in 0..EVENTS {
            ids.entry(url.clone()).or_default().push(scene.test(&webhook).await);
        }
    }
    sent(&sender, 3 * EVENTS).await;
    while scene.stats.delivered() + other.stats.delivered() < 60 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut arrived = BTreeMap::<String, Vec<String>>::new();
    for Sent { url, id, .. } in sender.sent() {
        arrived.entry(url).or_default().push(id);
    }
    assert_eq!(arrived, ids);
    let both = BTreeSet::from([scene.stats.delivered() > 0, other.stats.delivered() > 0]);
    assert_eq!(both, BTreeSet::from([true]), "both couriers work");
    scene.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn an_attempt_of_a_courier_that_ended_is_made_by_another_one() {
    let (store, hanging, sender) = (store(), Recorder::new([]), Recorder::new([]));
    hanging.permits.forget_permits(Semaphore::MAX_PERMITS);
    let (began, timeout) = (SystemClock.now(), Duration::from_secs(600));
    let scene = Scene::on(store.clone(), &hanging, CourierSettings { timeout, ..CourierSettings::default() }).await;
    let webhook = scene.webhook("https://a.example/").await;
    let id = scene.test(&webhook).await;
    sent(&hanging, 1).await;
    scene.running.abort();
    let later = async |timeouts: u32| {
        let clock = Arc::new(StoppedClock(began.saturating_add(timeout * timeouts)));
        Scene::at(clock, store.clone(), &sender, CourierSettings::default()).await
    };
    let early = later(1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    early.stop().await;
    assert_eq!(sender.sent().len(), 0, "its claim lasts twice the timeout");
    let next = later(4).await;
    next.attempts(1).await;
    assert_eq!(sender.sent().iter().map(|sent| &sent.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(next.states().await, [DeliveryState::Delivered]);
    next.stop().await;
}

/// Keeps the messages that were logged, with their levels.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    fn count(&self, level: Level, text: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|(logged, message)| *logged == level && message.contains(text)).count()
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push((*event.metadata().level(), message.0));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// The test controls the time: it passes as soon as everything waits.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_logged_once_and_asked_again() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let sender = Recorder::new([]);
    let scene = Scene::new(&sender).await;
    let webhook = scene.webhook("https://a.example/").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    scene.store.break_down();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let failed = || log.count(Level::WARN, "the store failed; webhooks are not delivered");
    assert_eq!(failed(), 1, "{log:?}");
    scene.store.repair();
    scene.test(&webhook).await;
    scene.attempts(1).await;
    assert_eq!((failed(), log.count(Level::INFO, "the store recovered")), (1, 1), "{log:?}");
    assert_eq!(scene.states().await, [DeliveryState::Delivered]);
    scene.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_recorded_again_until_the_store_takes_it() {
    let sender = Recorder::new([]);
    sender.permits.forget_permits(Semaphore::MAX_PERMITS);
    let scene = Scene::new(&sender).await;
    let webhook = scene.webhook("https://a.example/").await;
    scene.test(&webhook).await;
    sent(&sender, 1).await;
    scene.store.break_down();
    sender.permits.add_permits(1);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(scene.stats.delivered(), 0, "it is not recorded yet");
    scene.store.repair();
    scene.attempts(1).await;
    assert_eq!((scene.stats.delivered(), sender.sent().len()), (1, 1), "it was sent once");
    assert_eq!(scene.states().await, [DeliveryState::Delivered]);
    scene.stop().await;
}
