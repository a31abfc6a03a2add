//! The use cases, as every transport calls them: a server's handlers, a layer around a service, tools.

mod billing;
mod gate;
mod reports;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use gate::{Admission, Passage, RequestHead};

use crate::account::Account;
use crate::catalogue::Catalogue;
use crate::chain::Chain;
use crate::clock::{Clock, Timestamp};
use crate::error::Error;
use crate::key::ApiKey;
use crate::meter::Meter;
use crate::store::Store;
use crate::wire::PlansDocument;

/// How long a list of plans may be shown after it changed. A refused request carries the plans, and a client that
/// hammers at an empty balance must not make the store read them each time.
const PLANS_FRESH: Duration = Duration::from_secs(1);

/// What a [`Service`] tells its clients about itself.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// Where clients reach the service, without a slash at the end.
    pub public_url: String,
    /// Where the terms stand.
    pub terms_url: String,
    /// Which version of the terms applies.
    pub terms_version: String,
    /// The chains that plans are paid on, the primary one first.
    pub chains: Vec<Chain>,
}

/// The metering service without a transport.
pub struct Service {
    store: Arc<dyn Store>,
    meter: Arc<Meter>,
    catalogue: Arc<Catalogue>,
    clock: Arc<dyn Clock>,
    config: ServiceConfig,
    plans: Mutex<Option<(Timestamp, Arc<PlansDocument>)>>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("store", &self.store).field("config", &self.config).finish_non_exhaustive()
    }
}

impl Service {
    /// A service over these parts.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        meter: Arc<Meter>,
        catalogue: Arc<Catalogue>,
        clock: Arc<dyn Clock>,
        config: ServiceConfig,
    ) -> Self {
        Self { store, meter, catalogue, clock, config, plans: Mutex::new(None) }
    }

    /// The catalogue of metered routes.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The account of a key.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key.
    pub async fn authenticate(&self, key: Option<&ApiKey>) -> Result<Account, Error> {
        let hash = key.ok_or(Error::Unauthorized)?.hash();
        self.store.account_by_key(&hash).await?.ok_or(Error::Unauthorized)
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
        let plans = Arc::new(PlansDocument::new(&self.store.plans().await?, chains, terms_url, terms_version));
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&plans)));
        Ok(plans)
    }
}
