//! The use cases, as every transport calls them: a server's handlers, a layer around a service, tools.

mod arrivals;
mod billing;
mod claims;
mod desk;
mod fields;
mod gate;
mod position;
mod quotes;
mod recipients;
mod recovery;
mod refund;
mod reports;
mod settlement;
mod signups;
mod templates;
mod topups;
mod unreadable;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use arrivals::{Arrival, Arrivals, arrivals, payment_targets};
pub use billing::BillingSettings;
pub use desk::PaymentSettings;
pub use gate::{Admission, Passage, RequestHead};
pub use refund::PaidBack;
pub use settlement::SettlementLook;
pub use signups::SignupSettings;
pub use watch::Watched;

use crate::account::Account;
use crate::catalogue::Catalogue;
use crate::chain::{Chain, ChainReader};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::credentials::KeyFault;
use crate::error::Error;
use crate::key::ApiKey;
use crate::meter::{Meter, MeterConfig};
use crate::store::Store;
use crate::wire::PlansDocument;

/// How long a list of plans may be shown after it changed. A refused request carries the plans, and a client that
/// hammers at an empty balance must not make the store read them each time.
const PLANS_FRESH: Duration = Duration::from_secs(1);

/// What a [`Service`] tells its clients about itself.
///
/// The default says nothing: no chains, no terms, and links that are relative to the service.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// Where clients reach the service, without a slash at the end; the links in answers start with it.
    pub public_url: String,
    /// Where people reach the browser pages, without a slash at the end; empty when that is `public_url`.
    pub pages_url: String,
    /// Where the terms stand.
    pub terms_url: String,
    /// Which version of the terms applies.
    pub terms_version: String,
    /// The chains that plans are paid on, the primary one first.
    pub chains: Vec<Chain>,
    /// How long a request with an idempotency key may take until its retry is forwarded in its place: longer than
    /// whatever serves it may need. One minute by default.
    pub delivery_lease: Duration,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        let (public_url, pages_url, terms_url, terms_version) = Default::default();
        let chains = Vec::new();
        Self { public_url, pages_url, terms_url, terms_version, chains, delivery_lease: Duration::from_secs(60) }
    }
}

/// The metering service without a transport.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::{
///     AccountId, ApiKey, Catalogue, ClientSource, Clock, Credits, LedgerKind, MemoryStore, NewAccount, NewLedgerEntry,
///     Passage, RequestHead, Service, ServiceConfig, Store, SystemClock, SystemRandomness,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let key = ApiKey::generate(&SystemRandomness);
/// let id = AccountId::generate(&SystemRandomness);
/// let mut account = NewAccount::new(id, "agent".parse()?, key.hash(), SystemClock.now());
/// let free = Credits::from_whole(2).ok_or("out of range")?;
/// account.entries = vec![NewLedgerEntry::new(LedgerKind::SignupBonus, free, "Free credits")];
/// store.create_account(account).await?;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#,
/// )?;
/// let service = Service::start(store, catalogue, ServiceConfig::default());
/// let (key, source) = (Some(&key), ClientSource::Direct);
/// let admission = service.admit(RequestHead { key, method: "GET", path: "/price", query: None, source, idempotency_key: None }).await?;
/// let Passage::Charged(receipt) = admission.passage else { return Err("the route is metered".into()) };
/// assert_eq!(receipt.charged, Credits::BASE_CALL);
/// assert_eq!(service.balance(key).await?.credit_balance, receipt.balance);
///
/// // What could not be delivered is paid back, and at the end everything that was accepted is on disk.
/// service.refund(receipt).await?;
/// service.meter().drain().await;
/// # Ok(())
/// # }
/// ```
pub struct Service {
    store: Arc<dyn Store>,
    meter: Arc<Meter>,
    catalogue: Arc<Catalogue>,
    clock: Arc<dyn Clock>,
    config: ServiceConfig,
    plans: Mutex<Option<(Timestamp, Arc<PlansDocument>)>>,
    desk: desk::Desk,
    signup: SignupSettings,
    billing: BillingSettings,
    own_templates: templates::OwnTemplates,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("store", &self.store).field("config", &self.config).finish_non_exhaustive()
    }
}

impl Service {
    /// A service over `store`, with the operating system's clock and a meter of its own, started on the current Tokio
    /// runtime. [`Service::new`] takes other parts.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, catalogue: Catalogue, config: ServiceConfig) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let meter = Meter::start(Arc::clone(&store), Arc::clone(&clock), MeterConfig::default());
        Self::new(store, Arc::new(meter), Arc::new(catalogue), clock, config)
    }

    /// A service over these parts.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        meter: Arc<Meter>,
        catalogue: Arc<Catalogue>,
        clock: Arc<dyn Clock>,
        config: ServiceConfig,
    ) -> Self {
        let desk = desk::Desk::default();
        Self {
            store,
            meter,
            catalogue,
            clock,
            config,
            plans: Mutex::new(None),
            desk,
            signup: SignupSettings::default(),
            billing: BillingSettings::default(),
            own_templates: templates::OwnTemplates::default(),
        }
    }

    /// The same service, which sells plans on the chains that it can read; those of [`ServiceConfig::chains`] that
    /// have no reader are listed, and cannot be paid on.
    #[must_use]
    pub fn with_payments(mut self, readers: BTreeMap<u64, Arc<dyn ChainReader>>, settings: PaymentSettings) -> Self {
        self.desk = desk::Desk::new(readers, settings);
        self
    }

    /// Ends what waits for payments to be deep enough, now and from now on: those claims and top-ups are answered as
    /// they stand, and can be repeated. For the beginning of a shutdown.
    pub fn end_waits(&self) {
        self.desk.end_waits();
    }

    /// The same service, with these rules of signing up.
    #[must_use]
    pub fn with_signup(mut self, settings: SignupSettings) -> Self {
        self.signup = settings;
        self
    }

    /// What texts to be signed call the service: whoever signs should see whom they sign for.
    fn name(&self) -> String {
        match self.config.public_url.as_str() {
            "" => "The metering service".to_owned(),
            url => format!("The metering service at {url}"),
        }
    }

    /// The catalogue of metered routes.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// What charges; [`Meter::drain`] it before the process ends.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The account of a key.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key.
    pub async fn authenticate(&self, key: Option<&ApiKey>) -> Result<Account, Error> {
        let hash = key.ok_or(Error::Unauthorized)?.hash();
        self.store.account_by_key(&hash).await?.ok_or(Error::KeyRefused(KeyFault::NotLive))
    }

    /// What is for sale; at most a second old.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plans(&self) -> Result<Arc<PlansDocument>, Error> {
        let now = self.clock.now();
        let known = self.plans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read_at, plans)) = known
            && (read_at..read_at.saturating_add(PLANS_FRESH)).contains(&now)
        {
            return Ok(plans);
        }
        let ServiceConfig { chains, terms_url, terms_version, .. } = &self.config;
        let measured = |chain: &Chain| {
            let reader = self.desk.readers().get(&chain.chain_id);
            let confirmations = reader.and_then(|reader| reader.confirmations()).unwrap_or(chain.confirmations);
            Chain { confirmations, ..chain.clone() }
        };
        let chains: Vec<_> = chains.iter().map(measured).collect();
        let on_sale = self.store.plans().await?;
        self.register_recipients_of(&on_sale).await;
        let plans = Arc::new(PlansDocument::new(&on_sale, &chains, terms_url, terms_version));
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&plans)));
        Ok(plans)
    }
}
