//! Fixtures for the layer's tests: a service with one customer, and an inner service that records its requests.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use http::{Request, Response, StatusCode};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::receipts::{ReceiptError, ReceiptScope, ReceiptSigner, Statement};
use metering_core::service::Links;
use metering_core::{
    AccountId, ApiKey, Catalogue, Clock, Credits, MemoryStore, Meter, MeterConfig, MeteringLayer, NewAccount,
    RateLimits, Service, ServiceConfig, Store, SystemRandomness, Timestamp,
};
use tower::{Layer, ServiceExt, service_fn};

const CATALOGUE: &str = r#"{"market": "M", "version": 1, "endpoints": [
    {"path": "/price/{block}", "method": "GET", "metered": true, "credit_weight": 10, "params": [
        {"name": "block", "in": "path", "type": "integer", "required": true},
        {"name": "unit", "in": "query", "type": "string"}]},
    {"path": "/chat", "method": "GET", "metered": true, "errors": "openai"},
    {"path": "/messages", "method": "GET", "metered": true, "errors": "anthropic"},
    {"path": "/lookup", "method": "GET", "metered": true, "credit_weight": 10, "free_statuses": ["4xx"],
        "receipt": true},
    {"path": "/report", "method": "GET", "metered": true, "price": {"max": "0.5", "report": {"header": "x-cost"}}},
    {"path": "/models/{model}:run", "method": "GET", "metered": true, "errors": "openai",
        "params": [{"name": "model", "in": "path", "type": "string"}],
        "price": {"max": "0.5", "model": {"param": "model"}, "report": {"header": {"tokens": "x-tokens"}},
            "models": {"small": {"units": {"tokens": "0.001"}}, "large*": {"units": {"tokens": "0.01"}}}}},
    {"path": "/complete", "method": "POST", "metered": true,
        "price": {"max": "0.5", "model": {"json": "/model"}, "report": {"header": {"tokens": "x-tokens"}},
            "models": {"small": {"units": {"tokens": "0.001"}}}}},
    {"path": "/price/status", "method": "GET", "metered": false}]}"#;

/// The price of `/price/{block}`, in atoms.
pub(super) const PRICE: i64 = 10 * Credits::BASE_CALL.atoms();
/// The customer's starting balance, in atoms.
pub(super) const START: i64 = 7_200_000_000;

/// A manually advanced clock.
#[derive(Debug)]
pub(super) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(super) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis().try_into().unwrap(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.0.load(Ordering::SeqCst))
    }
}

/// The error of the inner service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// A fake signer of receipts: returns their contents as text, and keeps it.
#[derive(Debug, Default)]
pub(super) struct Signer(Mutex<Vec<Statement>>);

impl Signer {
    /// The receipts signed since the last call.
    pub(super) fn signed(&self) -> Vec<Statement> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[async_trait]
impl ReceiptSigner for Signer {
    async fn sign(&self, statement: Statement) -> Result<String, ReceiptError> {
        let receipt = format!("{} {}", statement.kind, statement.amount);
        self.0.lock().unwrap().push(statement);
        Ok(receipt)
    }
}

pub(super) type Outcome = Result<Response<String>, Broken>;

pub(super) struct Scene {
    pub(super) service: Arc<Service>,
    pub(super) store: Arc<MemoryStore>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) account: AccountId,
    pub(super) key: ApiKey,
    /// The requests that reached the inner service, without their bodies.
    pub(super) seen: Arc<Mutex<Vec<Request<()>>>>,
}

impl Scene {
    pub(super) async fn new() -> Self {
        Self::with(START, RateLimits::NONE).await
    }

    /// One customer with a balance of `balance` atoms and these rate limits, at noon.
    pub(super) async fn with(balance: i64, limits: RateLimits) -> Self {
        let clock = Arc::new(ManualClock(AtomicI64::new(1_795_262_400_000)));
        let store = Arc::new(MemoryStore::new());
        let key = ApiKey::generate(&SystemRandomness);
        let account = AccountId::generate(&SystemRandomness);
        let mut new = NewAccount::new(account.clone(), "agent".parse().unwrap(), key.hash(), clock.now());
        new.limits = limits;
        if balance > 0 {
            let amount = Credits::from_atoms(balance);
            let description = "Free credits".to_owned();
            new.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, amount, description)];
        }
        store.create_account(new).await.unwrap();
        let meter = Meter::start(Arc::clone(&store) as _, Arc::clone(&clock) as _, MeterConfig::default());
        let links = Links { plans: Some("https://api.example/plans".to_owned()), ..Links::default() };
        let config = ServiceConfig { links, ..ServiceConfig::default() };
        let catalogue = Arc::new(Catalogue::from_json(CATALOGUE).unwrap());
        let service =
            Service::new(Arc::clone(&store) as _, Arc::new(meter), catalogue, Arc::clone(&clock) as _, config);
        Self { service: Arc::new(service), store, clock, account, key, seen: Arc::default() }
    }

    /// The same with receipts for all who request one, and for these accounts.
    pub(super) fn with_receipts(self, signer: Arc<dyn ReceiptSigner>, always: ReceiptScope) -> Self {
        let service = Arc::into_inner(self.service).expect("nobody else has it yet");
        Self { service: Arc::new(service.with_receipts(signer, always)), ..self }
    }

    pub(super) fn layer(&self) -> MeteringLayer {
        MeteringLayer::new(Arc::clone(&self.service))
    }

    /// A GET with the customer's key.
    pub(super) fn get(&self, uri: &str) -> Request<String> {
        let bearer = format!("Bearer {}", self.key.expose());
        Request::get(uri).header("authorization", bearer).body("a body".to_owned()).unwrap()
    }

    /// Sends a request through the layer to an inner service that responds with `status`.
    pub(super) async fn ask(&self, request: Request<String>, status: StatusCode) -> Response<String> {
        let outcome = self.send(self.layer(), request, move || {
            Ok(Response::builder().status(status).header("x-inner", "1").body("inner".to_owned()).unwrap())
        });
        outcome.await.unwrap()
    }

    /// Sends a request through a layer to an inner service with this outcome.
    pub(super) async fn send(
        &self,
        layer: MeteringLayer,
        request: Request<String>,
        outcome: impl Fn() -> Outcome + Clone + Send + 'static,
    ) -> Outcome {
        let seen = Arc::clone(&self.seen);
        let inner = service_fn(move |request: Request<String>| {
            seen.lock().unwrap().push(request.map(|body| assert_eq!(body, "a body")));
            let outcome = outcome();
            async move { outcome }
        });
        layer.layer(inner).oneshot(request).await
    }

    /// The one request that reached the inner service.
    pub(super) fn seen_once(&self) -> Request<()> {
        let mut seen = self.seen.lock().unwrap();
        assert_eq!(seen.len(), 1);
        seen.remove(0)
    }

    /// The customer's balance, in atoms.
    pub(super) async fn balance(&self) -> i64 {
        self.store.account(&self.account).await.unwrap().unwrap().totals.balance.atoms()
    }
}

pub(super) fn header<'a>(response: &'a Response<String>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

pub(super) fn json(response: &Response<String>) -> serde_json::Value {
    assert_eq!(header(response, "content-type"), Some("application/json"));
    serde_json::from_str(response.body()).unwrap()
}
