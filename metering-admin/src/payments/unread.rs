//! Arrivals that cannot be read: found by a scan, or recorded by the server's watcher.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use metering_core::chains::ChainError;
use metering_core::payments::{ArrivalLocation, UnreadableArrival};
use metering_core::store::{PaymentStore, StoreError};

/// The maximum number of recorded arrivals to list.
const RECORDED_MAX: u32 = 10_000;

/// An arrival that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// Found by this scan.
    Now {
        /// Where it is.
        location: ArrivalLocation,
        /// Why it cannot be read.
        reason: String,
    },
    /// Recorded by the watcher.
    Recorded(UnreadableArrival),
}

/// The unreadable transactions that the watcher recorded in these blocks, and those that only this scan found: sorted
/// by location.
pub(super) async fn known(
    store: &dyn PaymentStore,
    chain_id: u64,
    blocks: RangeInclusive<u64>,
    unread: Vec<Unread>,
) -> Result<Vec<Unread>, StoreError> {
    let mut all: BTreeMap<ArrivalLocation, Unread> =
        unread.into_iter().map(|unread| (unread.location(), unread)).collect();
    for arrival in store.unreadable(chain_id, *blocks.start(), RECORDED_MAX).await? {
        if blocks.contains(&arrival.location.block_number) {
            all.insert(arrival.location, Unread::Recorded(arrival));
        }
    }
    Ok(all.into_values().collect())
}

impl Unread {
    pub(super) fn now(location: ArrivalLocation, error: &ChainError) -> Self {
        Self::Now { location, reason: error.to_string() }
    }

    /// Where it is.
    #[must_use]
    pub const fn location(&self) -> ArrivalLocation {
        match self {
            Self::Now { location, .. } => *location,
            Self::Recorded(arrival) => arrival.location,
        }
    }

    /// Why it cannot be read.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Now { reason, .. } => reason,
            Self::Recorded(arrival) => &arrival.reason,
        }
    }

    /// The watcher's record, if there is one.
    #[must_use]
    pub const fn record(&self) -> Option<&UnreadableArrival> {
        match self {
            Self::Now { .. } => None,
            Self::Recorded(arrival) => Some(arrival),
        }
    }
}
