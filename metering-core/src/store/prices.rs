//! The part of the storage contract for price versions.

use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::prices::{NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded, PriceVersion};
use crate::store::{Store, StoreError};

/// Stores the catalogues that were, are or will be in force.
///
/// ```
/// use metering_core::prices::{NewPriceVersion, PriceRecorded};
/// use metering_core::store::PriceStore;
/// use metering_core::{Clock, SystemClock};
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (store, now) = (SqliteStore::in_memory()?, SystemClock.now());
/// let new = NewPriceVersion { catalogue: "{}".into(), since: now, recorded_at: now, applied_by: None };
/// let PriceRecorded::Recorded(version) = store.record_prices(new).await? else { return Err("it is the first".into()) };
/// assert_eq!(store.price_versions(now).await?.in_force(now), Some(&version));
/// assert_eq!(store.price_catalogue(version.number).await?.as_deref(), Some("{}"));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait PriceStore: Store {
    /// Records a price version, with the next number. [`record_prices`](crate::backend::decision::record_prices)
    /// decides when nothing is recorded.
    async fn record_prices(&self, new: NewPriceVersion) -> Result<PriceRecorded, StoreError>;

    /// The version in force at `from`, and those that took or will take effect later, cancelled ones too.
    async fn price_versions(&self, from: Timestamp) -> Result<PriceHistory, StoreError>;

    /// The text of a version's catalogue; `None` when there is no such version.
    async fn price_catalogue(&self, number: PriceNumber) -> Result<Option<Arc<str>>, StoreError>;

    /// Cancels a version that has not taken effect at `now`, and returns its new state.
    /// [`cancel_prices`](crate::backend::decision::cancel_prices) decides when nothing changes. `None` when there is no
    /// such version.
    async fn cancel_prices(&self, number: PriceNumber, now: Timestamp) -> Result<Option<PriceVersion>, StoreError>;
}
