//! The service's operations, without a transport. The server's handlers, the layer and the tools all call these.

mod accounts;
mod arrivals;
mod authentication;
mod billing;
mod caller_price;
mod claims;
mod completion;
mod config;
mod email;
mod fields;
mod gate;
mod holds;
mod key_terms;
mod keys;
mod lifetime;
mod other_quotes;
mod own_templates;
mod paid_entries;
mod payer_proof;
mod paying;
mod payments;
mod position;
mod price_source;
mod prices;
mod quotes;
mod receipts;
mod recipients;
mod recovery;
mod refund;
mod reports;
mod request_payments;
mod rotation;
mod seen_payments;
mod seller;
mod settings;
mod settlement;
mod signups;
mod statements;
mod templates;
mod top_up_quotes;
mod top_up_status;
mod topups;
mod unreadable;
mod watch;
mod webhooks;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use arrivals::{Arrival, Arrivals, arrivals, payment_targets};
pub use config::{Links, ServiceConfig};
pub use email::recovery_accepted;
pub use gate::{Admission, AdmissionKind, MatchedRequest, Proxied, RequestContent, RequestHead};
pub use key_terms::{TermsReader, end_of_grace, wider_terms};
pub use lifetime::lifetime_events;
pub use payments::PaymentSettings;
pub use refund::RefundResult;
pub use request_payments::{
    ChallengeClient, HeaderValues, Paid, PaymentNotice, RequestPayment, RequestPayments, RequestedResource,
};
pub use seller::Seller;
pub use settings::{BillingSettings, SignupSettings, WebhookSettings};
pub use settlement::SettlementReport;
pub use watch::WatchReport;
pub use webhooks::{find_delivery, read_threshold};

use crate::catalogue::Catalogue;
use crate::chains::chain::{Chain, ChainReader};
use crate::charging::in_flight::InFlight;
use crate::charging::meter::{Meter, MeterConfig};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::error::Error;
use crate::store::{EventStore, PaymentStore, SignupStore, Store};
use crate::wire::PlansDocument;

/// How long the plans are cached. A request refused for lack of credits lists them, and a client that keeps sending
/// requests on an empty balance must not make the store read them every time.
const PLANS_MAX_AGE: Duration = Duration::from_secs(1);

/// The metering service without a transport.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::service::{AdmissionKind, RequestHead};
/// use metering_core::{Catalogue, ClientSource, Credits, MemoryStore, Service, ServiceConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#,
/// )?;
/// let service = Service::start(Arc::new(MemoryStore::new()), catalogue, ServiceConfig::default());
/// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
///
/// let (key, source) = (Some(&key), ClientSource::Direct);
/// let (address, body, query, idempotency_key) = (None, None, None, None);
/// let head = RequestHead { key, address, method: "GET", body, path: "/price", query, source, idempotency_key, payment: None };
/// let admission = service.admit(head).await?;
/// let AdmissionKind::Charged(receipt) = admission.kind else { return Err("the route is metered".into()) };
/// assert_eq!(receipt.charged, Credits::BASE_CALL);
/// assert_eq!(service.balance(key).await?.credit_balance, receipt.balance);
///
/// // Refund what could not be delivered. After `drain`, everything that was accepted is on disk.
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
    payments: Arc<payments::Payments>,
    signup_store: Option<Arc<dyn SignupStore>>,
    signup: SignupSettings,
    event_store: Option<Arc<dyn EventStore>>,
    webhooks: WebhookSettings,
    billing: BillingSettings,
    own_templates: Arc<own_templates::OwnTemplates>,
    in_flight: InFlight,
    request_payments: Option<Arc<dyn RequestPayments>>,
    prices: price_source::PriceSource,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("store", &self.store).field("config", &self.config).finish_non_exhaustive()
    }
}

impl Service {
    /// A service over `store`, with the system clock and its own meter, started on the current Tokio runtime. To choose
    /// the clock and the meter, use [`Service::new`].
    ///
    /// # Panics
    /// When called outside a Tokio runtime.
    #[must_use]
    pub fn start(store: Arc<dyn Store>, catalogue: Catalogue, config: ServiceConfig) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let meter = Meter::start(Arc::clone(&store), Arc::clone(&clock), MeterConfig::default());
        Self::new(store, Arc::new(meter), Arc::new(catalogue), clock, config)
    }

    /// A service over `store` without a catalogue, for a program that decides itself what each request costs
    /// ([`Service::charge`]). It has the system clock and its own meter, started on the current Tokio runtime.
    ///
    /// # Panics
    /// When called outside a Tokio runtime.
    #[must_use]
    pub fn with_defaults(store: Arc<dyn Store>) -> Self {
        Self::start(store, Catalogue::default(), ServiceConfig::default())
    }

    /// A service built from these parts.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::{Catalogue, Clock, MemoryStore, Meter, MeterConfig, Service, ServiceConfig, Timestamp};
    ///
    /// /// For tests: a fixed time.
    /// #[derive(Debug)]
    /// struct Noon;
    ///
    /// impl Clock for Noon {
    ///     fn now(&self) -> Timestamp {
    ///         Timestamp::from_unix_millis(1_795_262_400_000)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(Noon));
    /// let meter = Arc::new(Meter::start(store.clone(), clock.clone(), MeterConfig::default()));
    /// let service = Service::new(store, meter, Arc::new(Catalogue::default()), clock, ServiceConfig::default());
    /// let (account, _) = service.open_account("my-agent", "2".parse()?).await?;
    /// assert_eq!(account.created_at.to_string(), "2026-11-21T12:00:00.000Z");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        meter: Arc<Meter>,
        catalogue: Arc<Catalogue>,
        clock: Arc<dyn Clock>,
        config: ServiceConfig,
    ) -> Self {
        let payments = Arc::default();
        Self {
            store,
            meter,
            catalogue,
            clock,
            config,
            plans: Mutex::new(None),
            payments,
            signup_store: None,
            signup: SignupSettings::default(),
            event_store: None,
            webhooks: WebhookSettings::default(),
            billing: BillingSettings::default(),
            own_templates: Arc::default(),
            in_flight: InFlight::default(),
            request_payments: None,
            prices: price_source::PriceSource::default(),
        }
    }

    /// The same service with another catalogue and other settings. Both use the same store, meter and caches, and count
    /// the same requests in flight, so they can serve side by side: requests finish with the catalogue that they began
    /// with.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::{Catalogue, MemoryStore, Service, ServiceConfig};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let catalogue = Catalogue::from_json(
    ///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true}]}"#,
    /// )?;
    /// let next = service.reconfigured(Arc::new(catalogue), ServiceConfig::default());
    /// assert_eq!(next.balance(&key).await?.credit_balance, "2".parse()?);
    /// assert_eq!(next.catalogue().routes().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn reconfigured(&self, catalogue: Arc<Catalogue>, config: ServiceConfig) -> Self {
        Self {
            store: Arc::clone(&self.store),
            meter: Arc::clone(&self.meter),
            catalogue,
            clock: Arc::clone(&self.clock),
            config,
            plans: Mutex::new(None),
            payments: Arc::clone(&self.payments),
            signup_store: self.signup_store.clone(),
            signup: self.signup.clone(),
            event_store: self.event_store.clone(),
            webhooks: self.webhooks.clone(),
            billing: self.billing,
            own_templates: Arc::clone(&self.own_templates),
            in_flight: self.in_flight.clone(),
            request_payments: self.request_payments.clone(),
            prices: self.prices.clone(),
        }
    }

    /// Sells plans on the chains that have a reader. Other chains of [`ServiceConfig::chains`] are listed, but cannot
    /// be paid on. Without this, the service lists no plans and refuses everything about payments.
    ///
    /// `store` must be the service's own store: a payment is credited there.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::sync::Arc;
    ///
    /// use metering_core::service::PaymentSettings;
    /// use metering_core::{Catalogue, PaymentStore, Service, ServiceConfig};
    /// use metering_sqlite::SqliteStore;
    /// # mod in_memory {
    /// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/in_memory.rs"));
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let reader = Arc::new(in_memory::MemoryChain::default());
    /// # let chain = reader.listed();
    /// # let plan = serde_json::from_str(
    /// #     r#"{"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
    /// #         "token_amount": "5", "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0",
    /// #         "token_decimals": 6, "label": "Starter"}"#,
    /// # )?;
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// store.put_plans(vec![plan]).await?;
    /// let config = ServiceConfig { chains: vec![chain], ..ServiceConfig::default() };
    /// let shop = Service::start(store.clone(), Catalogue::default(), config).with_payments(
    ///     store,
    ///     BTreeMap::from([(8453, reader as _)]), // on a real chain, the reader of `metering-evm`
    ///     PaymentSettings::default(),
    /// );
    /// shop.register_recipients().await?;
    /// assert_eq!(shop.plans().await?.plans[0].label, "Starter");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_payments(
        mut self,
        store: Arc<dyn PaymentStore>,
        readers: BTreeMap<u64, Arc<dyn ChainReader>>,
        settings: PaymentSettings,
    ) -> Self {
        self.payments = Arc::new(payments::Payments::new(Some(store), readers, settings));
        self
    }

    /// Ends all waits for confirmations, current and future: claims and top-ups get a response immediately, and can be
    /// repeated. Call it when a shutdown begins.
    ///
    /// ```
    /// # use metering_core::{MemoryStore, Service, charging::MeterEnd};
    /// # use std::sync::Arc;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// service.end_waits();
    /// // Let the server finish its requests, and then:
    /// assert_eq!(service.meter().drain().await, MeterEnd::Drained);
    /// # }
    /// ```
    pub fn end_waits(&self) {
        self.payments.end_waits();
    }

    /// Offers free signups. Without this, the service refuses them.
    ///
    /// `store` must be the service's own store: new accounts are created there.
    ///
    /// [`Service::initiate_signup`] has an example.
    #[must_use]
    pub fn with_signup(mut self, store: Arc<dyn SignupStore>, settings: SignupSettings) -> Self {
        self.signup_store = Some(store);
        self.signup = settings;
        self
    }

    /// The service's name in texts to sign, so that signers see which service they sign for.
    fn name(&self) -> String {
        match self.config.public_url.as_str() {
            "" => "The metering service".to_owned(),
            url => format!("The metering service at {url}"),
        }
    }

    /// Where clients reach the service, without a trailing slash.
    #[must_use]
    pub fn public_url(&self) -> &str {
        &self.config.public_url
    }

    /// The catalogue of metered routes.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The meter. Call [`Meter::drain`] before the process ends.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The plans on sale, at most a second old.
    ///
    /// [`Service::with_payments`] has an example.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plans(&self) -> Result<Arc<PlansDocument>, Error> {
        let now = self.clock.now();
        let known = self.plans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read_at, plans)) = known
            && (read_at..read_at.saturating_add(PLANS_MAX_AGE)).contains(&now)
        {
            return Ok(plans);
        }
        let ServiceConfig { chains, terms_url, terms_version, .. } = &self.config;
        let measured = |chain: &Chain| {
            let reader = self.payments.readers().get(&chain.chain_id);
            let confirmations = reader.and_then(|reader| reader.confirmations()).unwrap_or(chain.confirmations);
            Chain { confirmations, ..chain.clone() }
        };
        let chains: Vec<_> = chains.iter().map(measured).collect();
        let on_sale = match self.payments.store() {
            Ok(store) => store.plans().await?,
            Err(_) => Vec::new(),
        };
        self.register_recipients_of(&on_sale).await;
        let plans = Arc::new(PlansDocument::new(&on_sale, &chains, terms_url, terms_version));
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&plans)));
        Ok(plans)
    }
}
