//! Requests that are served while their charge is flushed.

mod expected;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::receipts::ReceiptScope;
use metering_core::{
    AccountId, ApiKey, Catalogue, Charged, Clock, Credits, Meter, MeterConfig, MeteringLayer, NewAccount, Service,
    ServiceConfig, Store, StoreError, SystemClock, SystemRandomness,
};
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt, service_fn};

use super::scene::{Broken, START, Signer, header, json};
use crate::meter::gated::Gated;

const CATALOGUE: &str = r#"{"market": "M", "version": 1, "endpoints": [
    {"path": "/price", "method": "GET", "metered": true, "credit_weight": 10},
    {"path": "/order", "method": "POST", "metered": true, "credit_weight": 10},
    {"path": "/search", "method": "POST", "metered": true, "credit_weight": 10, "overlap": true}]}"#;
/// The price of each route, in atoms.
const PRICE: i64 = 10 * Credits::BASE_CALL.atoms();

/// A layer over a store whose flushes wait, and an inner service.
struct Scene {
    store: Arc<Gated>,
    service: Arc<Service>,
    account: AccountId,
    key: ApiKey,
    /// How often the inner service was called.
    calls: Arc<AtomicUsize>,
}

/// The actions of the inner service.
#[derive(Clone, Copy)]
enum Inner {
    Responds(StatusCode),
    /// Refunds the charge itself.
    Refunds,
    Fails,
}

impl Scene {
    async fn new(balance: i64) -> Self {
        let store = Gated::passing(100).with_thread(true);
        store.hold_flushes(0);
        Self::over(store, Arc::new(SystemClock), balance).await
    }

    async fn over(store: Gated, clock: Arc<dyn Clock>, balance: i64) -> Self {
        let store = Arc::new(store);
        let (account, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
        let mut new = NewAccount::new(account.clone(), "agent".parse().unwrap(), key.hash(), SystemClock.now());
        if balance > 0 {
            new.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, Credits::from_atoms(balance), "")];
        }
        store.create_account(new).await.unwrap();
        let meter = Arc::new(Meter::start(Arc::clone(&store) as _, Arc::clone(&clock), MeterConfig::default()));
        let catalogue = Arc::new(Catalogue::from_json(CATALOGUE).unwrap());
        let service = Service::new(Arc::clone(&store) as _, meter, catalogue, clock, ServiceConfig::default());
        let always = ReceiptScope::of_accounts([account.clone()]);
        let service = service.with_receipts(Arc::new(Signer::default()), always);
        Self { store, service: Arc::new(service), account, key, calls: Arc::default() }
    }

    fn request(&self, method: &str, path: &str) -> Request<String> {
        let bearer = format!("Bearer {}", self.key.expose());
        Request::builder().method(method).uri(path).header("authorization", bearer).body(String::new()).unwrap()
    }

    /// Sends a request through a layer that overlaps.
    fn send(&self, request: Request<String>, inner: Inner) -> JoinHandle<Result<Response<String>, Broken>> {
        self.send_through(MeteringLayer::new(Arc::clone(&self.service)).overlap(), request, inner)
    }

    fn send_through(
        &self,
        layer: MeteringLayer,
        request: Request<String>,
        inner: Inner,
    ) -> JoinHandle<Result<Response<String>, Broken>> {
        let calls = Arc::clone(&self.calls);
        let served = layer.layer(service_fn(move |request: Request<String>| {
            calls.fetch_add(1, Ordering::SeqCst);
            async move {
                let status = match inner {
                    Inner::Responds(status) => status,
                    Inner::Refunds => {
                        let charged = request.extensions().get::<Charged>().unwrap();
                        let _ = charged.refund().await;
                        StatusCode::OK
                    }
                    Inner::Fails => return Err(Broken),
                };
                let response = Response::builder().status(status).header("x-inner", "1");
                Ok::<_, Broken>(response.body("inner".to_owned()).unwrap())
            }
        }));
        tokio::spawn(served.oneshot(request))
    }

    /// Waits until something is so.
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it happens");
    }

    /// Waits until the inner service was called, and lets all tasks run until they block.
    async fn called(&self) {
        self.until(|scene| scene.calls() == 1).await;
        go_on().await;
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn refunds(&self) -> u64 {
        self.service.meter().stats().refunded.load(Ordering::Relaxed)
    }

    async fn balance(&self) -> i64 {
        self.store.account(&self.account).await.unwrap().unwrap().totals.balance.atoms()
    }
}

async fn go_on() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

const OK: Inner = Inner::Responds(StatusCode::OK);

#[tokio::test]
async fn inner_service_works_during_the_flush_and_its_response_waits_for_it() {
    for (method, path) in [("GET", "/price"), ("POST", "/search")] {
        let scene = Scene::new(START).await;
        let sent = scene.send(scene.request(method, path), OK);
        scene.called().await;
        assert!(!sent.is_finished(), "the charge is not on disk");
        scene.store.open_flushes(1);
        let response = sent.await.unwrap().unwrap();
        assert_eq!((response.status(), response.body().as_str()), (StatusCode::OK, "inner"));
        assert_eq!(header(&response, "x-bds-credit-charged"), Some("0.0013888889"));
        assert_eq!(header(&response, "metering-receipt"), Some("charge 0.0013888889"));
        assert_eq!(scene.balance().await, START - PRICE);
    }
}

#[tokio::test]
async fn response_is_dropped_when_the_flush_fails() {
    let errors = [
        (StoreError::Unavailable("the disk is full".into()), "storage_unavailable"),
        (StoreError::OutcomeUnknown("EIO at the commit".to_owned()), "outcome_unknown"),
    ];
    for (error, code) in errors {
        let scene = Scene::new(START).await;
        let sent = scene.send(scene.request("GET", "/price"), OK);
        scene.called().await;
        scene.store.fail_next_flush(error);
        scene.store.open_flushes(1);
        let response = sent.await.unwrap().unwrap();
        assert_eq!((response.status().as_u16(), &json(&response)["error"]), (503, &code.into()));
        for name in ["x-inner", "x-bds-credit-charged", "x-bds-credit-balance", "metering-receipt"] {
            assert_eq!(header(&response, name), None, "{name}");
        }
        assert_eq!(scene.service.meter().stats().failed_early.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn only_a_charge_that_got_to_disk_is_refunded() {
    let undelivered = Inner::Responds(StatusCode::BAD_GATEWAY);
    let free = Inner::Responds(StatusCode::TOO_MANY_REQUESTS);
    for (inner, status) in [(undelivered, 502), (free, 429), (Inner::Refunds, 200)] {
        for fails in [false, true] {
            let scene = Scene::new(START).await;
            let sent = scene.send(scene.request("GET", "/price"), inner);
            scene.called().await;
            assert_eq!((sent.is_finished(), scene.refunds()), (false, 0), "{status}");
            if fails {
                scene.store.fail_next_flush(StoreError::Unavailable("the disk is full".into()));
            }
            scene.store.open_flushes(2);
            let response = sent.await.unwrap().unwrap();
            assert_eq!(response.status().as_u16(), if fails { 503 } else { status }, "{fails}");
            assert_eq!(scene.refunds(), u64::from(!fails), "{status}");
        }
    }
}

#[tokio::test]
async fn refund_of_a_client_that_goes_away_waits_for_the_flush() {
    let scene = Scene::new(START).await;
    let sent = scene.send(scene.request("GET", "/price"), Inner::Responds(StatusCode::BAD_GATEWAY));
    scene.called().await;
    sent.abort();
    assert!(sent.await.unwrap_err().is_cancelled());
    scene.store.open_flushes(2);
    scene.until(|scene| scene.refunds() == 1).await;
    assert_eq!(scene.balance().await, START);
}

#[tokio::test]
async fn other_requests_are_served_once_their_charge_is_on_disk() {
    let overlapping = |scene: &Scene| MeteringLayer::new(Arc::clone(&scene.service)).overlap();
    let plain = |scene: &Scene| MeteringLayer::new(Arc::clone(&scene.service));
    // method, path, idempotency key, whether the layer overlaps
    let table = [("POST", "/order", None, true), ("GET", "/price", Some("once"), true), ("GET", "/price", None, false)];
    for (method, path, idempotency_key, overlaps) in table {
        let scene = Scene::new(START).await;
        let mut request = scene.request(method, path);
        if let Some(key) = idempotency_key {
            request.headers_mut().insert("idempotency-key", key.parse().unwrap());
        }
        let layer = if overlaps { overlapping(&scene) } else { plain(&scene) };
        let sent = scene.send_through(layer, request, OK);
        scene.until(|scene| scene.store.decided() == 1).await;
        go_on().await;
        assert_eq!(scene.calls(), 0, "{method} {path}");
        // The delivery of an idempotency key is recorded too.
        scene.store.open_flushes(2);
        assert_eq!(sent.await.unwrap().unwrap().status(), StatusCode::OK);
        assert_eq!(scene.calls(), 1);
    }
}

#[tokio::test]
async fn refused_charge_never_reaches_the_inner_service() {
    let scene = Scene::new(0).await;
    scene.store.open_flushes(1);
    let response = scene.send(scene.request("GET", "/price"), OK).await.unwrap().unwrap();
    assert_eq!((response.status().as_u16(), scene.calls()), (402, 0));
}
