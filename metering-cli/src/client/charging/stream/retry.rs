//! The retry policy for reconnects, as pure logic without a stream or a clock.

use std::time::Duration;

use metering_client::ClientError;
use metering_core::retry::RetryPolicy;

/// Reconnecting stops after this many consecutive failures without an event in between.
const MAX_ATTEMPTS: u32 = 8;

/// The policy for the failures to connect or to read since the last event.
pub(super) const POLICY: RetryPolicy = RetryPolicy {
    max_attempts: MAX_ATTEMPTS,
    longest_retry_after: Duration::from_secs(5 * 60),
    ..RetryPolicy::exponential(Duration::from_secs(1), Duration::from_secs(30))
};

/// Whether reconnecting may help.
pub(super) fn is_retryable(error: &ClientError) -> bool {
    match error {
        ClientError::Garbled(_) => false,
        ClientError::Unreachable(_) => true,
        ClientError::Refused(refusal) => matches!(refusal.status.as_u16(), 429 | 502..=504),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_client::{Refusal, Unreachable};
    use metering_core::retry::Retries;

    fn refused(status: u16, retry_after: Option<u64>) -> ClientError {
        let mut headers = http::HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert("retry-after", seconds.into());
        }
        Refusal::read(http::StatusCode::from_u16(status).unwrap(), &headers, Vec::new().into()).into()
    }

    fn pause(retries: &mut Retries, error: &ClientError) -> Option<Duration> {
        is_retryable(error).then(|| retries.next_wait(error.retry_after(), Duration::ZERO)).flatten()
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
            let pause = pause(&mut POLICY.start(), &refused(status, named));
            assert_eq!(pause, seconds.map(Duration::from_secs), "{status}");
        }
        assert_eq!(pause(&mut POLICY.start(), &ClientError::Garbled("x".to_owned())), None);
    }

    #[test]
    fn pauses_grow_and_end() {
        let away = ClientError::from(Unreachable("away".to_owned()));
        let mut retries = POLICY.start();
        let pauses: Vec<_> = std::iter::from_fn(|| pause(&mut retries, &away)).map(|pause| pause.as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }
}
