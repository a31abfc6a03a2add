//! The retry policy of `metering call`: which failures to retry, and how long to wait first.

use std::time::Duration;

use metering_client::{ClientError, Refusal};

use crate::client::backoff::{Backoff, MIN_PAUSE};

/// Whether the request has an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOrigin {
    None,
    /// One that was generated here.
    Generated,
    /// The user's own: by giving one, the user says that the service supports such keys.
    Given,
}

/// The time left to wait.
#[derive(Debug)]
pub(super) struct RetryPolicy {
    left: Duration,
    key: KeyOrigin,
    backoff: Backoff,
}

impl RetryPolicy {
    /// Waits at most `limit` in total.
    pub(super) const fn new(limit: Duration, key: KeyOrigin) -> Self {
        Self { left: limit, key, backoff: Backoff::new() }
    }

    /// How long to wait before sending the request again; `None` if a retry would not help, or would
    /// exceed the limit.
    ///
    /// Without an idempotency key, only requests that were rejected without a charge are retried: 429, and 503 except
    /// for an unknown outcome. With a key, an unknown outcome and a request in progress are retried too. A request
    /// whose response was lost is retried only with the user's own key: only the user knows whether the service
    /// supports keys.
    pub(super) fn pause_after(&mut self, error: &ClientError) -> Option<Duration> {
        let named = match error {
            ClientError::Refused(refusal) if self.is_retryable(refusal) => refusal.retry_after,
            ClientError::Unreachable(_) if self.key == KeyOrigin::Given => None,
            _ => return None,
        };
        let pause = match named {
            Some(named) => named.max(MIN_PAUSE),
            None => self.backoff.next(),
        };
        self.left = self.left.checked_sub(pause)?;
        Some(pause)
    }

    fn is_retryable(&self, refusal: &Refusal) -> bool {
        match refusal.code.as_str() {
            "outcome_unknown" | "request_in_progress" => self.key != KeyOrigin::None,
            _ => matches!(refusal.status.as_u16(), 429 | 503),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_client::Unreachable;

    fn refused(status: u16, retry_after: Option<u64>) -> ClientError {
        let mut headers = http::HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert("retry-after", seconds.into());
        }
        Refusal::read(http::StatusCode::from_u16(status).unwrap(), &headers, Vec::new().into()).into()
    }

    #[test]
    fn only_uncharged_requests_are_retried() {
        for status in [400, 401, 402, 404, 500, 502, 504] {
            let mut retries = RetryPolicy::new(Duration::from_secs(60), KeyOrigin::None);
            assert_eq!(retries.pause_after(&refused(status, Some(1))), None, "{status}");
        }
        let cut_off = ClientError::from(Unreachable("cut off".to_owned()));
        assert_eq!(RetryPolicy::new(Duration::from_secs(60), KeyOrigin::None).pause_after(&cut_off), None);
    }

    #[test]
    fn pauses_follow_the_service_or_double_until_the_limit() {
        let seconds = |pause: Option<Duration>| pause.map(|pause| pause.as_secs());
        let mut retries = RetryPolicy::new(Duration::from_secs(10), KeyOrigin::None);
        let table = [(Some(5), Some(5)), (Some(0), Some(1)), (None, Some(1)), (None, Some(2)), (None, None)];
        for (named, expected) in table {
            assert_eq!(seconds(retries.pause_after(&refused(429, named))), expected, "{named:?}");
        }
        assert_eq!(RetryPolicy::new(Duration::ZERO, KeyOrigin::None).pause_after(&refused(503, Some(1))), None);
    }

    #[test]
    fn idempotency_key_allows_more_retries() {
        let coded = |status: u16, code: &str| -> ClientError {
            let body = format!(r#"{{"error":"{code}","message":"m"}}"#);
            let status = http::StatusCode::from_u16(status).unwrap();
            Refusal::read(status, &http::HeaderMap::new(), body.into()).into()
        };
        let lost = ClientError::from(Unreachable("cut off".to_owned()));
        // error, without a key, with a generated one, with the user's own
        let table = [
            (coded(503, "outcome_unknown"), [false, true, true]),
            (coded(409, "request_in_progress"), [false, true, true]),
            (coded(409, "idempotency_key_used"), [false, false, false]),
            (coded(503, "overloaded"), [true, true, true]),
            (lost, [false, false, true]),
        ];
        for (error, expected) in table {
            let again = [KeyOrigin::None, KeyOrigin::Generated, KeyOrigin::Given]
                .map(|key| RetryPolicy::new(Duration::from_secs(60), key).pause_after(&error).is_some());
            assert_eq!(again, expected, "{error}");
        }
    }
}
