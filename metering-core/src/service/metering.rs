//! The service itself: its parts. Its operations are in the files beside this one, by subject.

use std::fmt;
use std::sync::Arc;

use crate::catalogue::Catalogue;
use crate::charging::in_flight::InFlight;
use crate::charging::meter::{Meter, MeterConfig};
use crate::clock::{Clock, SystemClock};
use crate::prices::PriceNumber;
use crate::service::billing::OwnTemplates;
use crate::service::config::ServiceConfig;
use crate::service::members::MemberSetup;
use crate::service::oauth::OAuthSetup;
use crate::service::payments::{PaymentState, PlansCache};
use crate::service::receipt_setup::ReceiptSetup;
use crate::service::signups::SignupSetup;
use crate::service::used_routes::UsedRoutes;
use crate::service::webhooks::WebhookSetup;
use crate::service::{Access, BillingSettings, RequestPayments};
use crate::store::{BrowserSessionStore, ChildAccountStore, OperatorStore, PriceStore, Store};

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
/// assert_eq!(service.usage().balance(key).await?.credit_balance, receipt.balance);
///
/// // Refund what could not be delivered. After `drain`, everything that was accepted is on disk.
/// service.refund(receipt).await?;
/// service.meter().drain().await;
/// # Ok(())
/// # }
/// ```
pub struct Service {
    pub(super) access: Access,
    pub(super) config: ServiceConfig,
    pub(super) charging: Charging,
    pub(super) payments: Arc<PaymentState>,
    pub(super) plans: PlansCache,
    pub(super) used_routes: Arc<UsedRoutes>,
    pub(super) signups: SignupSetup,
    pub(super) webhooks: WebhookSetup,
    /// `None` when the service keeps no sessions of browsers.
    pub(super) browser_sessions: Option<Arc<dyn BrowserSessionStore>>,
    /// `None` when accounts have no children.
    pub(super) child_accounts: Option<Arc<dyn ChildAccountStore>>,
    /// `None` when accounts have no members.
    pub(super) members: Option<MemberSetup>,
    /// `None` when no operators write notes on accounts.
    pub(super) notes: Option<Arc<dyn OperatorStore>>,
    /// `None` when the service offers no OAuth.
    pub(super) oauth: Option<OAuthSetup>,
}

/// The meter that charges requests.
#[derive(Clone)]
pub(super) struct Charging {
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) meter: Arc<Meter>,
    pub(super) in_flight: InFlight,
    pub(super) request_payments: Option<Arc<dyn RequestPayments>>,
    pub(super) billing: BillingSettings,
    pub(super) own_templates: Arc<OwnTemplates>,
    pub(super) price_store: Option<Arc<dyn PriceStore>>,
    /// The catalogue's prices.
    pub(super) price_version: Option<PriceNumber>,
    /// `None` when the service signs no receipts.
    pub(super) receipts: Option<ReceiptSetup>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("store", &self.access.store)
            .field("config", &self.config)
            .finish_non_exhaustive()
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

    /// A service over `store` without a catalogue, for a program that sets the price of each request itself
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
        let charging = Charging {
            catalogue,
            meter,
            in_flight: InFlight::default(),
            request_payments: None,
            billing: BillingSettings::default(),
            own_templates: Arc::default(),
            price_store: None,
            price_version: None,
            receipts: None,
        };
        Self {
            access: Access { store, clock },
            config,
            charging,
            payments: Arc::default(),
            plans: PlansCache::default(),
            used_routes: Arc::default(),
            signups: SignupSetup::default(),
            webhooks: WebhookSetup::default(),
            browser_sessions: None,
            child_accounts: None,
            notes: None,
            members: None,
            oauth: None,
        }
    }

    /// The same service with another catalogue and other settings. Both use the same store, meter and caches, and count
    /// the same requests in flight, so they can serve at the same time: a request uses the catalogue that it started
    /// with to its end.
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
    /// assert_eq!(next.usage().balance(&key).await?.credit_balance, "2".parse()?);
    /// assert_eq!(next.catalogue().routes().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn reconfigured(&self, catalogue: Arc<Catalogue>, config: ServiceConfig) -> Self {
        Self {
            access: self.access.clone(),
            config,
            charging: Charging { catalogue, ..self.charging.clone() },
            payments: Arc::clone(&self.payments),
            plans: PlansCache::default(),
            used_routes: Arc::clone(&self.used_routes),
            signups: self.signups.clone(),
            webhooks: self.webhooks.clone(),
            browser_sessions: self.browser_sessions.clone(),
            child_accounts: self.child_accounts.clone(),
            notes: self.notes.clone(),
            members: self.members.clone(),
            oauth: self.oauth.clone(),
        }
    }

    /// Describes plans by the routes that customers use most, if no route has a `unit`. Without this, or until they are
    /// [read](UsedRoutes::refresh), plans are described by the first routes of different prices.
    #[must_use]
    pub fn with_used_routes(mut self, used: Arc<UsedRoutes>) -> Self {
        self.used_routes = used;
        self
    }

    /// The routes that customers use most.
    #[must_use]
    pub fn used_routes(&self) -> &UsedRoutes {
        &self.used_routes
    }

    /// Who sends requests: the accounts and keys behind their secrets.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Where clients reach the service, without a trailing slash.
    #[must_use]
    pub fn public_url(&self) -> &str {
        &self.config.public_url
    }

    /// The catalogue of metered routes.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.charging.catalogue
    }

    /// The meter. Call [`Meter::drain`] before the process ends.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.charging.meter
    }
}
