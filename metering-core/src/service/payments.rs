//! Selling plans on chains: quotes, claims, top-ups, receipts, and the tasks that watch and settle payments.

mod arrivals;
mod auto_top_ups;
mod buyers;
mod claims;
mod completion;
mod other_quotes;
mod paid_entries;
mod payer_proof;
mod position;
mod processors;
mod quotes;
mod receipts;
mod recipients;
mod seen_payments;
mod settlement;
mod state;
mod top_up_quotes;
mod top_up_status;
mod top_ups;
mod unreadable;
mod watch;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub use arrivals::{Arrivals, arrivals, payment_targets};
pub use settlement::SettlementReport;
pub(super) use state::{PaymentState, PlansCache};
pub use watch::WatchReport;

use crate::catalogue::Catalogue;
use crate::chains::chain::{Chain, ChainReader};
use crate::error::Error;
use crate::payments::exchange_rates::ExchangeRates;
use crate::service::config::ServiceConfig;
use crate::service::metering::Service;
use crate::service::signups::SignupSetup;
use crate::service::{Access, PaymentSettings, RequestPayments, UsedRoutes};
use crate::store::PaymentStore;
use crate::wire::PlansDocument;

/// How long the plans are cached. A request refused for insufficient credits lists them, and a client that keeps
/// sending requests on an empty balance must not make the store read them every time.
const PLANS_MAX_AGE: Duration = Duration::from_secs(1);

/// Plans, and the payments for them, from [`Service::payments`].
#[derive(Debug, Clone, Copy)]
pub struct Payments<'s> {
    access: &'s Access,
    config: &'s ServiceConfig,
    state: &'s PaymentState,
    plans: &'s PlansCache,
    used_routes: &'s UsedRoutes,
    catalogue: &'s Catalogue,
    request_payments: Option<&'s dyn RequestPayments>,
    signups: &'s SignupSetup,
}

impl Service {
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
    /// shop.payments().register_recipients().await?;
    /// assert_eq!(shop.payments().plans().await?.plans[0].label, "Starter");
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
        self.payments = Arc::new(PaymentState::new(Some(store), readers, settings));
        self
    }

    /// Plans, and the payments for them.
    #[must_use]
    pub fn payments(&self) -> Payments<'_> {
        Payments {
            access: &self.access,
            config: &self.config,
            state: &self.payments,
            plans: &self.plans,
            used_routes: &self.used_routes,
            catalogue: &self.charging.catalogue,
            request_payments: self.charging.request_payments.as_deref(),
            signups: &self.signups,
        }
    }
}

impl<'s> Payments<'s> {
    /// The plans on sale, at most a second old.
    ///
    /// [`Service::with_payments`] has an example.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plans(self) -> Result<Arc<PlansDocument>, Error> {
        let now = self.access.now();
        let known = self.plans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read_at, plans)) = known
            && (read_at..read_at.saturating_add(PLANS_MAX_AGE)).contains(&now)
        {
            return Ok(plans);
        }
        let ServiceConfig { chains, cards, terms_url, terms_version, .. } = self.config;
        let measured = |chain: &Chain| {
            let reader = self.state.readers().get(&chain.chain_id);
            let confirmations = reader.and_then(|reader| reader.confirmations()).unwrap_or(chain.confirmations);
            Chain { confirmations, ..chain.clone() }
        };
        let chains: Vec<_> = chains.iter().map(measured).collect();
        let on_sale = match self.state.store() {
            Ok(store) => store.plans().await?,
            Err(_) => Vec::new(),
        };
        self.register_recipients_of(&on_sale).await;
        let used = self.used_routes.of(self.catalogue);
        let plans = PlansDocument::new(&on_sale, &chains, self.catalogue, &used, terms_url, terms_version);
        let plans = Arc::new(PlansDocument { cards: cards.clone(), ..plans });
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&plans)));
        Ok(plans)
    }

    /// The rates of the currency in which receipts express payments, from [`PaymentSettings::rates`].
    #[must_use]
    pub const fn rates(self) -> Option<&'s Arc<ExchangeRates>> {
        self.state.settings.rates.as_ref()
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
    /// service.payments().end_waits();
    /// // Let the server finish its requests, and then:
    /// assert_eq!(service.meter().drain().await, MeterEnd::Drained);
    /// # }
    /// ```
    pub fn end_waits(self) {
        self.state.end_waits();
    }
}
