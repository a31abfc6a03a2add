//! Arrivals that cannot be read: found by this command, or recorded by the server's watcher.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use metering_core::chains::{ChainError, TxHash};
use metering_core::payments::{ArrivalLocation, UnreadableArrival};
use metering_core::{PaymentStore, StoreError, Timestamp};
use serde::Serialize;

/// The maximum number of recorded arrivals to list.
const RECORDED_MAX: u32 = 10_000;

/// An arrival that cannot be read.
#[derive(Debug)]
pub(super) enum Unread {
    /// Found by this command, just now.
    Now { place: ArrivalLocation, reason: String },
    /// Recorded by the watcher.
    Recorded(UnreadableArrival),
}

/// An [`Unread`] as the command prints it.
#[derive(Debug, Serialize)]
pub(super) struct UnreadDocument<'a> {
    chain: &'a str,
    chain_id: u64,
    /// `null` if a whole block could not be searched.
    tx_hash: Option<TxHash>,
    block_number: u64,
    reason: &'a str,
    /// How many times the watcher tried; `null` if it did not.
    attempts: Option<u32>,
    found_at: Option<Timestamp>,
    /// `null` once the watcher gave up.
    next_attempt_at: Option<Timestamp>,
}

/// What the watcher recorded in these blocks, and what this command could not read and the watcher did not record.
pub(super) async fn known(
    store: &dyn PaymentStore,
    chain_id: u64,
    blocks: RangeInclusive<u64>,
    unread: Vec<Unread>,
) -> Result<Vec<Unread>, StoreError> {
    let mut all: BTreeMap<ArrivalLocation, Unread> =
        unread.into_iter().map(|unread| (unread.place(), unread)).collect();
    for arrival in store.unreadable(chain_id, *blocks.start(), RECORDED_MAX).await? {
        if blocks.contains(&arrival.location.block_number) {
            all.insert(arrival.location, Unread::Recorded(arrival));
        }
    }
    Ok(all.into_values().collect())
}

impl Unread {
    pub(super) fn now(place: ArrivalLocation, error: &ChainError) -> Self {
        Self::Now { place, reason: error.to_string() }
    }

    pub(super) const fn place(&self) -> ArrivalLocation {
        match self {
            Self::Now { place, .. } => *place,
            Self::Recorded(arrival) => arrival.location,
        }
    }

    fn reason(&self) -> &str {
        match self {
            Self::Now { reason, .. } => reason,
            Self::Recorded(arrival) => &arrival.reason,
        }
    }

    const fn record(&self) -> Option<&UnreadableArrival> {
        match self {
            Self::Now { .. } => None,
            Self::Recorded(arrival) => Some(arrival),
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())?;
        match self.record() {
            None => Ok(()),
            Some(UnreadableArrival { attempts, next_attempt_at: Some(next), .. }) => {
                write!(f, "; tried {attempts} times, next at {next}")
            }
            Some(UnreadableArrival { attempts, .. }) => write!(f, "; gave up after {attempts} attempts"),
        }
    }
}

impl<'a> UnreadDocument<'a> {
    pub(super) fn new(chain: &'a str, unread: &'a Unread) -> Self {
        let ArrivalLocation { chain_id, block_number, hash } = unread.place();
        let record = unread.record();
        Self {
            chain,
            chain_id,
            tx_hash: hash,
            block_number,
            reason: unread.reason(),
            attempts: record.map(|arrival| arrival.attempts),
            found_at: record.map(|arrival| arrival.found_at),
            next_attempt_at: record.and_then(|arrival| arrival.next_attempt_at),
        }
    }
}
