//! Decides whether this machine's clock can be trusted: compares it with the store's clock, if it has one, and with the
//! monotonic clock.
//!
//! Idempotency keys, quotes and signups expire by the clock, and accounts are refilled by it, so nothing is deleted or
//! refilled while the clock may be wrong.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metering_core::clock::ClockSkew;
use metering_core::{Clock, Store, StoreError, SystemClock, Timestamp};
use tokio::time::Instant;

/// A jump that lasts this long counts as a correction of the clock.
const CORRECTION_AFTER: Duration = Duration::from_secs(60 * 60);

/// The last findings, kept so that each change is logged once.
#[derive(Debug, Default)]
pub(crate) struct ClockWatch {
    skew: Mutex<Option<ClockSkew>>,
    jumps: Mutex<Option<JumpDetector>>,
}

impl ClockWatch {
    /// Compares the machine's clock with the store's and returns the skew. Logs when skew begins and when it ends.
    /// Charges and leases still use the store's clock ([`StoreClock`](metering_core::store::StoreClock)).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn skew(&self, store: &dyn Store) -> Result<Option<ClockSkew>, StoreError> {
        let before = SystemClock.now();
        let Some(stores) = store.clock().await? else { return Ok(None) };
        let found = ClockSkew::found(before, stores, SystemClock.now());
        let known = std::mem::replace(&mut *self.skew.lock().unwrap_or_else(PoisonError::into_inner), found);
        match (known, found) {
            (None, Some(skew)) => tracing::error!(
                "this machine's clock is {skew} of the database's; the server is not ready until they agree. Check NTP on both machines"
            ),
            (Some(_), None) => tracing::info!("this machine's clock agrees with the database's again"),
            _ => {}
        }
        Ok(found)
    }

    /// The current time for expiring records and refilling accounts; `None` while the clock cannot be trusted.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(crate) async fn trusted_now(
        &self,
        clock: &dyn Clock,
        store: &dyn Store,
    ) -> Result<Option<Timestamp>, StoreError> {
        let skewed = self.skew(store).await?.is_some();
        let now = clock.now();
        let jumped = {
            let mut jumps = self.jumps.lock().unwrap_or_else(PoisonError::into_inner);
            let reading = Reading { at: Instant::now(), clock: now };
            jumps.get_or_insert_with(|| JumpDetector::new(reading)).has_jumped(reading)
        };
        Ok((!skewed && !jumped).then_some(now))
    }
}

/// A reading of the clock, with the monotonic time of the reading.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    clock: Timestamp,
}

/// Detects jumps of the clock.
#[derive(Debug)]
struct JumpDetector {
    /// The last trusted reading.
    base: Reading,
    /// The first reading after a jump.
    jumped: Option<Reading>,
}

impl JumpDetector {
    fn new(base: Reading) -> Self {
        Self { base, jumped: None }
    }

    /// Whether the clock jumped since the last trusted reading; logs each jump once. A jump that lasts an hour counts
    /// as a correction.
    fn has_jumped(&mut self, reading: Reading) -> bool {
        if agree(self.base, reading) {
            (self.base, self.jumped) = (reading, None);
            return false;
        }
        match self.jumped {
            Some(first) if agree(first, reading) => {
                if reading.at.duration_since(first.at) < CORRECTION_AFTER {
                    return true;
                }
                (self.base, self.jumped) = (reading, None);
                false
            }
            _ => {
                tracing::warn!(now = %reading.clock, "this machine's clock jumped; for an hour, expired records are kept and accounts are not refilled");
                self.jumped = Some(reading);
                true
            }
        }
    }
}

/// Whether the clock advanced by as much as the monotonic clock.
fn agree(earlier: Reading, later: Reading) -> bool {
    let expected = earlier.clock.saturating_add(later.at.duration_since(earlier.at));
    ClockSkew::found(later.clock, expected, later.clock).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const DAY: Duration = Duration::from_secs(86_400);

    #[tokio::test]
    async fn jumps_are_not_trusted_until_they_last() {
        let start = Instant::now();
        let noon = Timestamp::from_unix_millis(1_795_262_400_000);
        let reading = |passed: Duration, clock: Timestamp| Reading { at: start + passed, clock };
        let right = |passed: Duration| reading(passed, noon.saturating_add(passed));
        let ahead = |passed: Duration| reading(passed, noon.saturating_add(passed + DAY * 3));
        let behind = |passed: Duration| reading(passed, noon.saturating_add(passed).saturating_sub(DAY));

        let mut jumps = JumpDetector::new(right(Duration::ZERO));
        assert!(!jumps.has_jumped(right(MINUTE)));
        let slewed = reading(MINUTE * 2, noon.saturating_add(MINUTE * 2 + Duration::from_secs(4)));
        assert!(!jumps.has_jumped(slewed), "a small adjustment is not a jump");
        assert!(jumps.has_jumped(ahead(MINUTE * 3)));
        assert!(!jumps.has_jumped(right(MINUTE * 4)), "a single bad reading does not last");
        assert!(jumps.has_jumped(behind(MINUTE * 5)));
        assert!(jumps.has_jumped(behind(MINUTE * 64)));
        assert!(jumps.has_jumped(ahead(MINUTE * 65)), "another jump");
        assert!(jumps.has_jumped(ahead(MINUTE * 100)));
        assert!(!jumps.has_jumped(ahead(MINUTE * 125)), "a jump that lasted an hour is a correction");
        assert!(!jumps.has_jumped(ahead(MINUTE * 126)));
        assert!(jumps.has_jumped(right(MINUTE * 127)));
    }
}
