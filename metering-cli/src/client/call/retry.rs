//! How long to wait out a refusal that costs nothing.

use std::time::Duration;

use metering_client::ClientError;

use crate::client::pauses::{Pauses, SHORTEST};

/// What is left to wait.
#[derive(Debug)]
pub(super) struct Patience {
    left: Duration,
    pauses: Pauses,
}

impl Patience {
    /// Waits for `limit` altogether.
    pub(super) const fn new(limit: Duration) -> Self {
        Self { left: limit, pauses: Pauses::new() }
    }

    /// How long to wait before asking again; `None` when that would not help, or not in time.
    ///
    /// Only what the service refused without a charge is asked again: 429 and 503. After an answer that was cut off,
    /// nobody but the account holder can say whether to pay twice.
    pub(super) fn pause_after(&mut self, error: &ClientError) -> Option<Duration> {
        let ClientError::Refused(refusal) = error else { return None };
        if !matches!(refusal.status.as_u16(), 429 | 503) {
            return None;
        }
        let pause = match refusal.retry_after {
            Some(named) => named.max(SHORTEST),
            None => self.pauses.next(),
        };
        self.left = self.left.checked_sub(pause)?;
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_client::{Refusal, Unreachable};

    fn refused(status: u16, retry_after: Option<u64>) -> ClientError {
        let mut headers = http::HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert("retry-after", seconds.into());
        }
        Refusal::read(http::StatusCode::from_u16(status).unwrap(), &headers, Vec::new().into()).into()
    }

    #[test]
    fn only_what_was_not_charged_is_asked_again() {
        for status in [400, 401, 402, 404, 500, 502, 504] {
            let mut patience = Patience::new(Duration::from_secs(60));
            assert_eq!(patience.pause_after(&refused(status, Some(1))), None, "{status}");
        }
        let cut_off = ClientError::from(Unreachable("cut off".to_owned()));
        assert_eq!(Patience::new(Duration::from_secs(60)).pause_after(&cut_off), None);
    }

    #[test]
    fn pauses_are_those_of_the_service_or_double_until_patience_ends() {
        let seconds = |pause: Option<Duration>| pause.map(|pause| pause.as_secs());
        let mut patience = Patience::new(Duration::from_secs(10));
        let table = [(Some(5), Some(5)), (Some(0), Some(1)), (None, Some(1)), (None, Some(2)), (None, None)];
        for (named, expected) in table {
            assert_eq!(seconds(patience.pause_after(&refused(429, named))), expected, "{named:?}");
        }
        assert_eq!(Patience::new(Duration::ZERO).pause_after(&refused(503, Some(1))), None);
    }
}
