//! Names the price version of charges and of days of usage.

use std::sync::Arc;

use crate::prices::PriceNumber;
use crate::service::metering::Service;
use crate::store::PriceStore;

impl Service {
    /// Names the price version in the receipts of charges, and the versions of each day in reports of usage. `serving`
    /// is the version of the service's catalogue. Without this, neither is named.
    ///
    /// `store` must be the service's own store.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::prices::{NewPriceVersion, PriceRecorded};
    /// use metering_core::store::PriceStore;
    /// use metering_core::{Charge, Clock, Service, SystemClock};
    /// use metering_sqlite::SqliteStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(SqliteStore::in_memory()?);
    /// let service = Service::with_defaults(store.clone());
    /// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    ///
    /// let (catalogue, now) = (service.catalogue().json().into(), SystemClock.now());
    /// let new = NewPriceVersion { catalogue, since: now, recorded_at: now, applied_by: None };
    /// let PriceRecorded::Recorded(version) = store.record_prices(new).await? else { return Err("it is new".into()) };
    /// let service = service.with_prices(store, version.number);
    ///
    /// service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// let usage = service.usage().summary(Some(&key), 1).await?;
    /// assert_eq!(usage.by_day[0].price_versions, [1]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_prices(mut self, store: Arc<dyn PriceStore>, serving: PriceNumber) -> Self {
        (self.charging.price_store, self.charging.price_version) = (Some(store), Some(serving));
        self
    }

    /// The price version of the service's catalogue, if it is known.
    #[must_use]
    pub const fn price_version(&self) -> Option<PriceNumber> {
        self.charging.price_version
    }
}
