//! The retry policy of `metering call`: which failures to retry, and how long to wait first.

use std::time::Duration;

use metering_client::ClientError;
use metering_core::retry::RetryPolicy;

/// Whether the request has an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOrigin {
    None,
    /// One that was generated here.
    Generated,
    /// The user's own: giving one means that the service supports such keys.
    Given,
}

/// Waits at most `limit` in total.
pub(super) const fn policy(limit: Duration) -> RetryPolicy {
    let (first, longest) = (Duration::from_secs(1), Duration::from_secs(30));
    RetryPolicy { deadline: limit, ..RetryPolicy::exponential(first, longest) }
}

/// Whether to send the request again.
///
/// Without an idempotency key, only requests that were rejected without a charge are retried: 429, and 503 except for
/// an unknown outcome. With a key, an unknown outcome and a request in progress are retried too. A request whose
/// response was lost is retried only with the user's own key: only the user knows whether the service supports keys.
pub(super) fn is_retryable(error: &ClientError, key: KeyOrigin) -> bool {
    match error {
        ClientError::Refused(refusal) => match refusal.code.as_str() {
            "outcome_unknown" | "request_in_progress" => key != KeyOrigin::None,
            _ => matches!(refusal.status.as_u16(), 429 | 503),
        },
        ClientError::Unreachable(_) => key == KeyOrigin::Given,
        ClientError::Garbled(_) => false,
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
    fn only_uncharged_requests_are_retried() {
        for status in [400, 401, 402, 404, 500, 502, 504] {
            assert!(!is_retryable(&refused(status, Some(1)), KeyOrigin::None), "{status}");
        }
        let cut_off = ClientError::from(Unreachable("cut off".to_owned()));
        assert!(!is_retryable(&cut_off, KeyOrigin::None));
    }

    #[test]
    fn pauses_follow_the_service_or_double_until_the_limit() {
        let (mut retries, mut waited) = (policy(Duration::from_secs(10)).start(), Duration::ZERO);
        let table = [(Some(5), Some(5)), (Some(0), Some(1)), (None, Some(1)), (None, Some(2)), (None, None)];
        for (named, expected) in table {
            let wait = retries.next_wait(refused(429, named).retry_after(), waited);
            waited += wait.unwrap_or_default();
            assert_eq!(wait.map(|wait| wait.as_secs()), expected, "{named:?}");
        }
        let mut none = policy(Duration::ZERO).start();
        assert_eq!(none.next_wait(refused(503, Some(1)).retry_after(), Duration::ZERO), None);
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
            let again = [KeyOrigin::None, KeyOrigin::Generated, KeyOrigin::Given].map(|key| is_retryable(&error, key));
            assert_eq!(again, expected, "{error}");
        }
    }
}
