//! Arrivals that could not be read. Recording them keeps one bad transaction from blocking the rest.
//!
//! Anyone can make a transaction whose receipt is too large to read. The watcher records it and moves on. It is retried
//! a few times, then left to the operator.

use std::fmt;
use std::time::Duration;

use crate::chains::transaction::TxHash;
use crate::clock::Timestamp;

/// The longest reason that is stored, in characters.
const REASON_CHARS_MAX: usize = 300;
/// The wait before the second attempt. Each later wait is four times as long as the one before.
const FIRST_WAIT: Duration = Duration::from_secs(30);

/// The location of an arrival that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArrivalLocation {
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The number of its block.
    pub block_number: u64,
    /// The transaction; `None` when the block as a whole could not be searched.
    pub hash: Option<TxHash>,
}

/// A transaction or block that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableArrival {
    /// Where it is.
    pub location: ArrivalLocation,
    /// Why the last attempt failed.
    pub reason: String,
    /// The number of attempts so far.
    pub attempts: u32,
    /// When it was found.
    pub found_at: Timestamp,
    /// When it is due for a retry; `None` after the last attempt.
    pub next_attempt_at: Option<Timestamp>,
}

impl UnreadableArrival {
    /// The number of attempts before giving up.
    pub const ATTEMPTS_MAX: u32 = 5;

    /// An arrival whose first attempt just failed.
    #[must_use]
    pub fn new(location: ArrivalLocation, reason: &str, now: Timestamp) -> Self {
        let next_attempt_at = Some(now.saturating_add(FIRST_WAIT));
        Self { location, reason: shortened(reason), attempts: 1, found_at: now, next_attempt_at }
    }

    /// The same arrival after one more failed attempt.
    ///
    /// ```
    /// use metering_core::Timestamp;
    /// use metering_core::payments::{ArrivalLocation, UnreadableArrival};
    ///
    /// let location = ArrivalLocation { chain_id: 1, block_number: 7, hash: None };
    /// let mut arrival = UnreadableArrival::new(location, "the response is too large", Timestamp::from_unix_millis(0));
    /// while let Some(now) = arrival.next_attempt_at {
    ///     arrival = arrival.failed_again("the response is too large", now);
    /// }
    /// assert_eq!(arrival.attempts, UnreadableArrival::ATTEMPTS_MAX);
    /// ```
    #[must_use]
    pub fn failed_again(self, reason: &str, now: Timestamp) -> Self {
        let attempts = self.attempts.saturating_add(1);
        let wait = FIRST_WAIT.saturating_mul(4_u32.saturating_pow(attempts - 1));
        let next_attempt_at = (attempts < Self::ATTEMPTS_MAX).then(|| now.saturating_add(wait));
        Self { reason: shortened(reason), attempts, next_attempt_at, ..self }
    }
}

/// Cuts the reason short and replaces control characters, so it fits a log line, a table cell and any database.
fn shortened(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl fmt::Display for ArrivalLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain_id, block_number, hash } = self;
        match hash {
            Some(hash) => write!(f, "{hash} in block {block_number} of chain {chain_id}"),
            None => write!(f, "block {block_number} of chain {chain_id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let start = Timestamp::from_unix_millis(0);
        let location = ArrivalLocation { chain_id: 1, block_number: 2, hash: None };
        let mut arrival = UnreadableArrival::new(location, "a", start);
        let mut waits = Vec::new();
        let mut now = start;
        while let Some(next) = arrival.next_attempt_at {
            waits.push((next.unix_millis() - now.unix_millis()) / 1000);
            now = next;
            arrival = arrival.failed_again("b", now);
        }
        assert_eq!(waits, [30, 120, 480, 1920]);
        assert_eq!((arrival.attempts, arrival.found_at, arrival.reason.as_str()), (5, start, "b"));
    }

    #[test]
    fn reasons_are_short_and_of_one_line() {
        let location = ArrivalLocation { chain_id: 1, block_number: 2, hash: None };
        let arrival =
            UnreadableArrival::new(location, &format!("a\0b\n{}", "é".repeat(1_000)), Timestamp::from_unix_millis(0));
        assert!(arrival.reason.starts_with("a b é"));
        assert_eq!(arrival.reason.chars().count(), REASON_CHARS_MAX);
    }
}
