use std::fmt;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::prices::{PriceHistory, PriceNumber};
use crate::store::{PriceStore, StoreError};
use crate::usage::DayRange;

/// The version that a service's catalogue is, and where the others are.
#[derive(Clone, Default)]
pub(super) struct PriceSource {
    pub(super) store: Option<Arc<dyn PriceStore>>,
    pub(super) serving: Option<PriceNumber>,
}

impl PriceSource {
    /// The price versions in force over the last `days` UTC days; none without a store.
    pub(super) async fn history(&self, days: u32, now: Timestamp) -> Result<PriceHistory, StoreError> {
        let Some(store) = &self.store else { return Ok(PriceHistory::default()) };
        store.price_versions(DayRange::last_days(now, days).first.start()).await
    }
}

impl fmt::Debug for PriceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PriceSource").field(&self.serving).finish()
    }
}
