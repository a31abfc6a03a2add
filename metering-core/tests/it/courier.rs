//! The courier on a store in memory: which events are sent, in what order, and retries.

mod failing;
mod shares;
mod trouble;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use metering_core::events::{
    AttemptOutcome, Courier, CourierSettings, CourierStats, DeliveryFilter, DeliveryState, SigningSecret, WebhookId,
    WebhookMessage, WebhookSecret, WebhookSender, WebhookTerms, WebhookUrl, signature,
};
use metering_core::service::WebhookSettings;
use metering_core::store::EventStore;
use metering_core::wire::{ChangeWebhookRequest, CreateWebhookRequest, RotateWebhookRequest};
use metering_core::{ApiKey, Charge, Clock, Error, Service, SystemClock, SystemRandomness, Timestamp};
use metering_sqlite::SqliteStore;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::meter::gated::Gated;

/// A store in memory that can [break down](Gated::break_down).
type Store = Gated<SqliteStore>;

fn store() -> Arc<Store> {
    Arc::new(Gated::over(SqliteStore::in_memory().unwrap(), Semaphore::MAX_PERMITS))
}

/// A sent message.
#[derive(Debug, Clone)]
struct Sent {
    id: String,
    url: String,
    body: String,
    signatures: usize,
    is_signed: bool,
}

/// Responds with these outcomes, then with 204. Waits for a permit before each response.
#[derive(Debug)]
struct Recorder {
    outcomes: Mutex<VecDeque<AttemptOutcome>>,
    sent: Mutex<Vec<Sent>>,
    permits: Semaphore,
    panics: AtomicBool,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl Recorder {
    fn new(outcomes: impl IntoIterator<Item = AttemptOutcome>) -> Arc<Self> {
        let (sent, permits) = (Mutex::default(), Semaphore::new(Semaphore::MAX_PERMITS));
        let outcomes = Mutex::new(outcomes.into_iter().collect());
        let (panics, at_once, most_at_once) = Default::default();
        Arc::new(Self { outcomes, sent, permits, panics, at_once, most_at_once })
    }

    fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }
}

#[async_trait]
impl WebhookSender for Recorder {
    async fn send(&self, message: WebhookMessage<'_>) -> AttemptOutcome {
        let WebhookMessage { webhook, id, timestamp, signature: signed, body } = message;
        let secrets: Vec<_> = webhook.secrets.iter().map(|SigningSecret { secret, .. }| secret).collect();
        self.sent.lock().unwrap().push(Sent {
            id: id.to_owned(),
            url: webhook.terms.url.to_string(),
            body: String::from_utf8(body.to_vec()).unwrap(),
            signatures: signed.split(' ').count(),
            is_signed: signed == signature(&secrets, id, timestamp, body),
        });
        assert!(!self.panics.swap(false, Ordering::SeqCst), "as the test expects");
        let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        self.permits.acquire().await.unwrap().forget();
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        self.outcomes.lock().unwrap().pop_front().unwrap_or(AttemptOutcome::Delivered { status: 204 })
    }
}

/// A service with one account, and a courier that delivers its events.
struct Scene {
    store: Arc<Store>,
    service: Service,
    key: ApiKey,
    stats: Arc<CourierStats>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Scene {
    async fn new(sender: &Arc<Recorder>) -> Self {
        Self::with(sender, CourierSettings::default()).await
    }

    async fn with(sender: &Arc<Recorder>, settings: CourierSettings) -> Self {
        Self::on(store(), sender, settings).await
    }

    async fn on(store: Arc<Store>, sender: &Arc<Recorder>, settings: CourierSettings) -> Self {
        Self::at(Arc::new(SystemClock), store, sender, settings).await
    }

    /// With a clock for the courier.
    async fn at(clock: Arc<dyn Clock>, store: Arc<Store>, sender: &Arc<Recorder>, settings: CourierSettings) -> Self {
        let webhooks = WebhookSettings::default();
        let settings = CourierSettings { wake: webhooks.wake.clone(), ..settings };
        let service = Service::with_defaults(store.clone()).with_webhooks(store.clone(), webhooks);
        let (_, key) = service.open_account("an-agent", "2".parse().unwrap()).await.unwrap();
        let courier = Courier::new(store.clone(), sender.clone(), clock, settings);
        let (stats, (stop, stopped)) = (courier.stats(), oneshot::channel());
        let running = tokio::spawn(courier.run(async { drop(stopped.await) }));
        Self { store, service, key, stats, stop: Some(stop), running }
    }

    async fn webhook(&self, url: &str) -> String {
        let request = CreateWebhookRequest { url: Some(url.to_owned()), events: None };
        self.service.webhooks().create(Some(&self.key), &request).await.unwrap().data.id
    }

    async fn test(&self, webhook: &str) -> String {
        self.service.webhooks().test(Some(&self.key), webhook).await.unwrap().data.event.id
    }

    /// Waits for this many attempts to end.
    async fn attempts(&self, count: u64) {
        let ended = async {
            while self.stats.delivered() + self.stats.failed() < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), ended).await.expect("the attempts end");
    }

    async fn states(&self) -> Vec<DeliveryState> {
        let page = self.store.deliveries(None, DeliveryFilter::default(), None, 100).await.unwrap();
        page.items.iter().rev().map(|delivery| delivery.progress.state).collect()
    }

    async fn stop(mut self) {
        drop(self.stop.take());
        self.running.await.unwrap();
    }
}

fn failed(status: u16) -> AttemptOutcome {
    AttemptOutcome::of_response(status, None)
}

#[tokio::test]
async fn events_are_sent_signed_and_in_order() {
    let sender = Recorder::new([]);
    let scene = Scene::new(&sender).await;
    let webhook = scene.webhook("https://a.example/").await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(scene.test(&webhook).await);
    }
    scene.attempts(20).await;
    let sent = sender.sent();
    assert_eq!(sent.iter().map(|sent| sent.id.clone()).collect::<Vec<_>>(), ids);
    assert!(sent.iter().all(|sent| sent.is_signed && sent.signatures == 1 && sent.url == "https://a.example/"));
    assert_eq!(sender.most_at_once.load(Ordering::SeqCst), 1, "one account, one webhook: one at a time");
    let body: serde_json::Value = serde_json::from_str(&sent[0].body).unwrap();
    assert_eq!(body["type"], "webhook.test");
    assert!(body["timestamp"].as_str().unwrap().parse::<Timestamp>().is_ok(), "{body}");
    assert_eq!(body["data"]["message"], "This is a test. Nothing happened.");
    assert_eq!(scene.states().await, [DeliveryState::Delivered; 20]);
    scene.stop().await;
}

#[tokio::test]
async fn the_balance_in_an_event_keeps_its_digits() {
    let sender = Recorder::new([]);
    let scene = Scene::new(&sender).await;
    scene.webhook("https://a.example/").await;
    let alert = serde_json::from_str(r#"{"below": "1.99999999"}"#).unwrap();
    scene.service.webhooks().set_balance_alert(Some(&scene.key), &alert).await.unwrap();
    let charge = Charge::new(&scene.key, "0.10000001".parse().unwrap(), "GET", "/price");
    scene.service.charge(charge).await.unwrap();
    scene.attempts(1).await;
    let sent = sender.sent();
    assert!(sent[0].body.contains(r#""balance":1.89999999,"threshold":1.99999999"#), "{sent:?}");
    scene.stop().await;
}

#[tokio::test]
async fn both_secrets_sign_during_a_rotation() {
    let sender = Recorder::new([]);
    let scene = Scene::new(&sender).await;
    let webhook = scene.webhook("https://a.example/").await;
    let rotation = RotateWebhookRequest::default();
    scene.service.webhooks().rotate(Some(&scene.key), &webhook, &rotation).await.unwrap();
    scene.test(&webhook).await;
    scene.attempts(1).await;
    let at_once = RotateWebhookRequest { grace_seconds: Some(0) };
    scene.service.webhooks().rotate(Some(&scene.key), &webhook, &at_once).await.unwrap();
    scene.test(&webhook).await;
    scene.attempts(2).await;
    let sent = sender.sent();
    assert_eq!(sent.iter().map(|sent| (sent.signatures, sent.is_signed)).collect::<Vec<_>>(), [(2, true), (1, true)]);
    scene.stop().await;
}

#[tokio::test]
async fn a_failure_waits_and_holds_back_only_its_own_line() {
    let sender = Recorder::new([failed(500)]);
    let scene = Scene::new(&sender).await;
    let slow = scene.webhook("https://slow.example/").await;
    scene.test(&slow).await;
    scene.attempts(1).await;
    scene.test(&slow).await;
    let fast = scene.webhook("https://fast.example/").await;
    scene.test(&fast).await;
    scene.attempts(2).await;
    let urls: Vec<_> = sender.sent().into_iter().map(|sent| sent.url).collect();
    assert_eq!(urls, ["https://slow.example/", "https://fast.example/"]);
    assert_eq!((scene.stats.delivered(), scene.stats.failed(), scene.stats.parked()), (1, 1, 0));
    assert_eq!(scene.states().await, [DeliveryState::Pending, DeliveryState::Pending, DeliveryState::Delivered]);
    scene.stop().await;
}

#[tokio::test]
async fn a_webhook_that_is_gone_gets_nothing_until_it_is_switched_on() {
    let sender = Recorder::new([AttemptOutcome::Gone]);
    let scene = Scene::new(&sender).await;
    let webhook = scene.webhook("https://a.example/").await;
    scene.test(&webhook).await;
    scene.attempts(1).await;
    assert_eq!((scene.states().await, scene.stats.parked()), (vec![DeliveryState::Parked], 1));
    let refused = scene.service.webhooks().test(Some(&scene.key), &webhook).await.unwrap_err();
    assert!(matches!(refused, Error::WebhookInactive));
    let on = ChangeWebhookRequest { disabled: Some(false), ..ChangeWebhookRequest::default() };
    scene.service.webhooks().change(Some(&scene.key), &webhook, &on).await.unwrap();
    let parked =
        scene.service.webhooks().deliveries(Some(&scene.key), &webhook, Some("parked"), None, None, 10).await.unwrap();
    let id = parked.data[0].id.to_string();
    scene.service.webhooks().resend(Some(&scene.key), &webhook, &id).await.unwrap();
    scene.attempts(2).await;
    assert_eq!(scene.states().await, [DeliveryState::Delivered]);
    scene.stop().await;
}

#[tokio::test]
async fn no_more_than_the_maximum_are_in_progress_and_all_end_before_it_does() {
    let sender = Recorder::new([]);
    sender.permits.forget_permits(Semaphore::MAX_PERMITS);
    let scene = Scene::with(&sender, CourierSettings { max_in_flight: 2, ..CourierSettings::default() }).await;
    for number in 0..5 {
        let webhook = scene.webhook(&format!("https://{number}.example/")).await;
        scene.test(&webhook).await;
    }
    while sender.sent().len() < 2 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(sender.sent().len(), 2);
    let (stats, store) = (Arc::clone(&scene.stats), Arc::clone(&scene.store));
    let stopping = tokio::spawn(scene.stop());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!stopping.is_finished(), "it waits for those in progress");
    sender.permits.add_permits(5);
    stopping.await.unwrap();
    assert_eq!((sender.sent().len(), stats.delivered()), (2, 2), "no more begin");
    let waiting = DeliveryFilter { state: Some(DeliveryState::Pending), ..Default::default() };
    assert_eq!(store.deliveries(None, waiting, None, 10).await.unwrap().items.len(), 3);
}

#[tokio::test]
async fn the_operators_webhook_is_left_to_processes_that_know_its_secrets() {
    let sender = Recorder::new([]);
    let secret = WebhookSecret::generate(&SystemRandomness);
    for (secrets, delivered) in [(vec![], 0), (vec![secret.clone(), secret], 1)] {
        let settings = CourierSettings { operator_secrets: secrets, ..CourierSettings::default() };
        let scene = Scene::with(&sender, settings).await;
        let url = WebhookUrl::parse_trusted("http://localhost:1/").unwrap();
        let terms = WebhookTerms { url, kinds: Default::default() };
        scene.store.set_operator_webhook(Some(terms), SystemClock.now()).await.unwrap();
        scene.store.test_webhook(None, &WebhookId::OPERATOR, SystemClock.now()).await.unwrap().unwrap();
        scene.service.webhooks().list(Some(&scene.key)).await.unwrap();
        if delivered == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        } else {
            scene.attempts(delivered).await;
            assert_eq!(sender.sent()[0].signatures, 2);
        }
        assert_eq!(scene.stats.delivered(), delivered);
        scene.stop().await;
    }
}
