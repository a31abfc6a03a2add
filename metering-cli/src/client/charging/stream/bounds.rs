//! When to stop following a stream that has not ended.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::client::session::interruption::Interruption;

/// What ended the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The time is up, or enough events have arrived.
    Reached,
    /// The user stopped it.
    Interrupted,
}

/// The bounds of a stream.
#[derive(Debug)]
pub(super) struct Bounds {
    interruption: Interruption,
    events_max: Option<u64>,
    until: Option<Instant>,
}

impl Bounds {
    /// Bounds that start now.
    pub(super) fn new(interruption: Interruption, events_max: Option<u64>, duration: Option<Duration>) -> Self {
        // A time beyond the clock's range sets no limit.
        let until = duration.and_then(|duration| Instant::now().checked_add(duration));
        Self { interruption, events_max, until }
    }

    /// Whether there is a bound other than an interruption.
    pub(super) const fn exist(&self) -> bool {
        self.events_max.is_some() || self.until.is_some()
    }

    /// Whether this many events reach the bound.
    pub(super) fn are_reached_by(&self, events: u64) -> bool {
        self.events_max.is_some_and(|max| events >= max)
    }

    /// Waits for `work`, unless a bound is reached first.
    pub(super) async fn wait_for<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        let until = self.until;
        let time = async move {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.interruption.next() => Err(End::Interrupted),
            () = time => Err(End::Reached),
            done = work => Ok(done),
        }
    }
}

/// Parses a duration: plain seconds, or with units.
pub(super) fn read_duration(text: &str) -> Result<Duration, &'static str> {
    let invalid = "must be a duration such as 30s, 5m or 1h";
    let seconds = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    if let Some(seconds) = seconds {
        return Ok(Duration::from_secs(seconds));
    }
    let duration: jiff::SignedDuration = text.parse().map_err(|_| invalid)?;
    Duration::try_from(duration).map_err(|_| invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_or_are_seconds() {
        let table = [("30", 30), ("30s", 30), ("5m", 300), ("1h", 3_600), ("1h 30m", 5_400), ("PT1M", 60)];
        for (text, seconds) in table {
            assert_eq!(read_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(read_duration("250ms"), Ok(Duration::from_millis(250)));
        for text in ["", "-5s", "1x", "h", "99999999999999999999"] {
            assert!(read_duration(text).is_err(), "{text}");
        }
    }
}
