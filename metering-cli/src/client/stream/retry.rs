//! The retry policy for reconnects, as pure logic without a stream or a clock.

use std::time::Duration;

use metering_client::ClientError;

use crate::client::backoff::{Backoff, MIN_PAUSE};

/// The longest pause to accept from the service.
const MAX_NAMED_PAUSE: Duration = Duration::from_secs(5 * 60);
/// Reconnecting stops after this many failures in a row without an event in between.
const MAX_ATTEMPTS: u32 = 8;

/// The failures to connect or to read since the last event.
#[derive(Debug)]
pub(super) struct RetryPolicy {
    attempts_left: u32,
    backoff: Backoff,
}

impl RetryPolicy {
    pub(super) const fn new() -> Self {
        Self { attempts_left: MAX_ATTEMPTS, backoff: Backoff::new() }
    }

    /// How long to wait before reconnecting; `None` if that would not help.
    pub(super) fn pause_after(&mut self, error: &ClientError) -> Option<Duration> {
        let named = match error {
            ClientError::Garbled(_) => return None,
            ClientError::Unreachable(_) => None,
            ClientError::Refused(refusal) if matches!(refusal.status.as_u16(), 429 | 502..=504) => refusal.retry_after,
            ClientError::Refused(_) => return None,
        };
        self.attempts_left = self.attempts_left.saturating_sub(1);
        if self.attempts_left == 0 || named.is_some_and(|named| named > MAX_NAMED_PAUSE) {
            return None;
        }
        let pause = self.backoff.next();
        Some(named.unwrap_or(pause).max(MIN_PAUSE))
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
    fn only_temporary_failures_are_retried() {
        // status, retry after, pause in seconds
        let table = [
            (429, Some(5), Some(5)),
            (429, Some(0), Some(1)),
            (429, Some(301), None),
            (503, None, Some(1)),
            (502, None, Some(1)),
            (504, None, Some(1)),
            (500, None, None),
            (401, None, None),
            (402, None, None),
            (404, Some(1), None),
        ];
        for (status, named, seconds) in table {
            let pause = RetryPolicy::new().pause_after(&refused(status, named));
            assert_eq!(pause, seconds.map(Duration::from_secs), "{status}");
        }
        assert_eq!(RetryPolicy::new().pause_after(&ClientError::Garbled("x".to_owned())), None);
    }

    #[test]
    fn pauses_grow_and_end() {
        let away = ClientError::from(Unreachable("away".to_owned()));
        let mut retries = RetryPolicy::new();
        let pauses: Vec<_> = std::iter::from_fn(|| retries.pause_after(&away)).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }
}
