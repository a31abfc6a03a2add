//! The routes that customers use most. Plans are described by them, so they are read in the background, not by requests.

use std::sync::{Arc, PoisonError, RwLock};

use crate::catalogue::{Catalogue, Route};
use crate::charging::volume::CountedRoute;
use crate::clock::Timestamp;
use crate::store::{Store, StoreError};
use crate::usage::DayRange;

/// How many days count, with the current one.
const DAYS: u32 = 7;
/// How many routes of a catalogue are looked at: not each has a price that can be put in words.
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
/// // From time to time, in the background:
/// used.refresh(&*store, SystemClock.now()).await?;
/// let routes = used.of(service.catalogue());
/// assert_eq!(service.catalogue().buys("1".parse()?, &routes), ["50 calls to /b"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct UsedRoutes(RwLock<Arc<[CountedRoute]>>);

impl UsedRoutes {
    /// Those that customers can call at a price: others are not in the catalogue, or are free.
    #[must_use]
    pub fn of<'c>(&self, catalogue: &'c Catalogue) -> Vec<&'c Route> {
        let ranking = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let known = |route: &CountedRoute| catalogue.by_template(&route.http_method, &route.route_template);
        ranking.iter().filter_map(known).filter(|route| !route.is_free()).take(MOST).collect()
    }

    /// Reads the usage of the last week. After an error, what was read before stays.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn refresh(&self, store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
        let calls = store.route_calls(DayRange::last_days(now, DAYS)).await?;
        let ranking = calls.into_iter().map(|(route, _)| route).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = ranking;
        Ok(())
    }
}
