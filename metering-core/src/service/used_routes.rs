//! The routes that customers use most. Plans are described by them, so they are read in the background, not by requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::catalogue::{Catalogue, Route};
use crate::charging::volume::CountedRoute;
use crate::clock::Timestamp;
use crate::store::{Store, StoreError};
use crate::usage::DayRange;

/// How many days count, with the current one.
const DAYS: u32 = 7;
/// How many routes of a catalogue are considered: many prices cannot be put in words.
const MOST: usize = 8;

/// The routes of all requests in the last week, most used first. None until the first [`refresh`](Self::refresh).
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::service::UsedRoutes;
/// use metering_core::{Catalogue, Charge, Clock, MemoryStore, Service, ServiceConfig, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/a", "method": "GET", "metered": true, "price": "0.01"},
///         {"path": "/b", "method": "GET", "metered": true, "price": "0.02"}]}"#,
/// )?;
/// let (store, used) = (Arc::new(MemoryStore::new()), Arc::new(UsedRoutes::default()));
/// let service = Service::start(store.clone(), catalogue, ServiceConfig::default()).with_used_routes(used.clone());
/// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
/// service.charge(Charge::new(&key, "0.02".parse()?, "GET", "/b")).await?;
/// service.charge(Charge::new(&key, "0.5".parse()?, "GET", "/gone")).await?;
///
/// assert!(used.of(service.catalogue()).is_empty(), "they have not been read");
/// // From time to time, in the background:
/// used.refresh(&*store, SystemClock.now()).await?;
/// let routes = used.of(service.catalogue());
/// assert_eq!(service.catalogue().buys("1".parse()?, &routes), ["50 calls to /b"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct UsedRoutes {
    ranking: RwLock<Arc<[CountedRoute]>>,
    /// Whether some catalogue has no route with a `unit`.
    is_needed: AtomicBool,
}

impl UsedRoutes {
    /// Routes that customers can call at a price: others are not in the catalogue, or are free. None if the catalogue
    /// [chooses](Catalogue::has_units) the units that describe plans.
    #[must_use]
    pub fn of<'c>(&self, catalogue: &'c Catalogue) -> Vec<&'c Route> {
        if catalogue.has_units() {
            return Vec::new();
        }
        self.is_needed.store(true, Ordering::Relaxed);
        let ranking = Arc::clone(&self.ranking.read().unwrap_or_else(PoisonError::into_inner));
        let known = |route: &CountedRoute| catalogue.by_template(&route.http_method, &route.route_template);
        ranking.iter().filter_map(known).filter(|route| !route.is_free()).take(MOST).collect()
    }

    /// Reads the usage of the last week, once [`of`](Self::of) had to look at it. After an error, the routes read
    /// before are kept.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn refresh(&self, store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
        if !self.is_needed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let calls = store.route_calls(DayRange::last_days(now, DAYS)).await?;
        let ranking = calls.into_iter().map(|(route, _)| route).collect();
        *self.ranking.write().unwrap_or_else(PoisonError::into_inner) = ranking;
        Ok(())
    }
}
