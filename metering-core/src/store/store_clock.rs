//! The clock of a node that shares a store: the store's own, so leases, budgets and expiries mean the same on every
//! node, whatever its machine's clock.
//!
//! Between two readings of the store's clock it follows the monotonic clock, so setting the machine's clock has no
//! effect. A store without a clock (one file, one machine) leaves the machine's clock in force.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::{Clock, Timestamp};
use crate::store::{Store, StoreError};

/// Marks that the store's clock was never read.
const UNREAD: i64 = i64::MIN;

/// A clock that follows a store's.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::store::StoreClock;
/// use metering_core::{MemoryStore, Meter, MeterConfig, Store, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let clock = Arc::new(StoreClock::new(Arc::new(SystemClock)));
/// clock.sync(&*store).await?;
/// tokio::spawn(Arc::clone(&clock).follow(Arc::downgrade(&store)));
/// let meter = Meter::start(store, clock, MeterConfig::default());
/// # meter.drain().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StoreClock {
    machine: Arc<dyn Clock>,
    /// The start of the monotonic clock.
    anchor: Instant,
    /// The store's time at `anchor`, in milliseconds since the Unix epoch, or [`UNREAD`].
    base: AtomicI64,
}

impl StoreClock {
    /// How often [`StoreClock::follow`] reads the store's clock.
    pub const INTERVAL: Duration = Duration::from_secs(5);

    /// A clock that is the machine's until the store's was read.
    #[must_use]
    pub fn new(machine: Arc<dyn Clock>) -> Self {
        Self { machine, anchor: Instant::now(), base: AtomicI64::new(UNREAD) }
    }

    /// Reads the store's clock, and follows that reading from now on.
    ///
    /// # Errors
    /// When the store cannot be read. The clock continues as before.
    pub async fn sync(&self, store: &dyn Store) -> Result<(), StoreError> {
        let sent = self.anchor.elapsed();
        let Some(read) = store.clock().await? else { return Ok(()) };
        let received = self.anchor.elapsed();
        let known = Some(self.base.load(Ordering::Relaxed)).filter(|base| *base != UNREAD);
        self.base.store(rebased(known, read, sent, received), Ordering::Relaxed);
        Ok(())
    }

    /// Keeps following the clock of a store until the store is dropped. While it cannot be read, this clock runs on the
    /// monotonic clock.
    pub async fn follow(self: Arc<Self>, store: Weak<dyn Store>) {
        loop {
            tokio::time::sleep(Self::INTERVAL).await;
            let Some(store) = store.upgrade() else { return };
            if let Err(error) = self.sync(&*store).await {
                tracing::debug!(%error, "could not read the store's clock");
            }
        }
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        match self.base.load(Ordering::Relaxed) {
            UNREAD => self.machine.now(),
            base => Timestamp::from_unix_millis(base).saturating_add(self.anchor.elapsed()),
        }
    }
}

/// The store's time at the anchor, given a reading between `sent` and `received` after it. The known time is kept if
/// the reading allows it, so slow responses do not move the clock.
fn rebased(known: Option<i64>, read: Timestamp, sent: Duration, received: Duration) -> i64 {
    let latest = read.saturating_sub(sent).unix_millis();
    let earliest = read.saturating_sub(received.max(sent)).unix_millis();
    known.map_or(earliest.midpoint(latest), |known| known.clamp(earliest, latest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_moves_the_clock_only_as_far_as_it_must() {
        let millis = Duration::from_millis;
        // known, read, sent, received, base
        let table = [
            (None, 10_000, 0, 0, 10_000),
            (None, 10_000, 0, 400, 9_800),
            (Some(9_700), 10_000, 0, 400, 9_700),
            (Some(9_500), 10_000, 0, 400, 9_600),
            (Some(10_300), 10_000, 0, 400, 10_000),
            // The database's clock was set back by an hour.
            (Some(5_000_000), 1_405_010, 5_000, 5_010, 1_400_010),
        ];
        for (known, read, sent, received, base) in table {
            let read = Timestamp::from_unix_millis(read);
            assert_eq!(rebased(known, read, millis(sent), millis(received)), base, "{known:?} {read:?}");
        }
    }
}
