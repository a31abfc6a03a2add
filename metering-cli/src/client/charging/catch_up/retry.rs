//! The retry policy for one block, as pure logic without a service or a clock.

use std::time::Duration;

use metering_client::ClientError;
use metering_core::retry::RetryPolicy;

/// The first pause if the service does not request one; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The minimum pause, even if the service requests none.
const MIN_PAUSE: Duration = Duration::from_millis(200);
/// How many times a block is requested, including the first.
const MAX_ATTEMPTS: u32 = 5;

/// The classification of a failed request for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was rejected without a charge, or refunded: a retry may succeed.
    Retry,
    /// The block does not exist, now or later.
    Missing,
    /// A retry would not help.
    Stop,
}

/// Stops if the service requests a pause longer than `pause_max`.
pub(super) const fn policy(pause_max: Duration) -> RetryPolicy {
    RetryPolicy {
        max_attempts: MAX_ATTEMPTS,
        shortest_wait: MIN_PAUSE,
        longest_retry_after: pause_max,
        ..RetryPolicy::exponential(FIRST_PAUSE, Duration::MAX)
    }
}

/// Judges a failed request for a block.
pub(super) fn judge(error: &ClientError) -> Verdict {
    match error {
        ClientError::Garbled(_) => Verdict::Stop,
        ClientError::Unreachable(_) => Verdict::Retry,
        ClientError::Refused(refusal) => match (refusal.status.as_u16(), refusal.code.as_str()) {
            // The gateway's own 404, which says nothing about the block, and a block that is not final yet.
            (404, "unknown_route" | "block_not_final") => Verdict::Stop,
            (404 | 410, _) => Verdict::Missing,
            (429 | 502..=504, _) => Verdict::Retry,
            _ => Verdict::Stop,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_client::{Refusal, Unreachable};

    #[test]
    fn only_temporary_uncharged_failures_are_retried() {
        // status, code, verdict
        let table = [
            (429, "rate_limited", Verdict::Retry),
            (503, "overloaded", Verdict::Retry),
            (502, "upstream_unreachable", Verdict::Retry),
            (504, "upstream_timeout", Verdict::Retry),
            (500, "internal", Verdict::Stop),
            (400, "invalid_parameter", Verdict::Stop),
            (401, "unauthorized", Verdict::Stop),
            (402, "insufficient_credits", Verdict::Stop),
            (404, "unknown_block", Verdict::Missing),
            (404, "http_404", Verdict::Missing),
            (410, "pruned", Verdict::Missing),
            (404, "unknown_route", Verdict::Stop),
            (404, "block_not_final", Verdict::Stop),
        ];
        for (status, code, verdict) in table {
            let body = format!(r#"{{"error":"{code}","message":"Sentence."}}"#);
            let status = http::StatusCode::from_u16(status).unwrap();
            let refusal = Refusal::read(status, &http::HeaderMap::new(), body.into());
            assert_eq!(judge(&refusal.into()), verdict, "{status} {code}");
        }
        assert_eq!(judge(&ClientError::Garbled("x".to_owned())), Verdict::Stop);
        assert_eq!(judge(&Unreachable("x".to_owned()).into()), Verdict::Retry);
    }

    #[test]
    fn pauses_follow_the_service_or_double_until_they_end() {
        let own = [Some(500), Some(1_000), Some(2_000), Some(4_000), None];
        let minute = Duration::from_secs(60);
        // the maximum pause, the pause that the service requests (s), pauses (ms)
        let table = [
            (minute, None, own.as_slice()),
            (minute, Some(30), &[Some(30_000)]),
            (minute, Some(60), &[Some(60_000), Some(60_000), Some(60_000), Some(60_000), None]),
            (minute, Some(61), &[None]),
            (minute, Some(0), &[Some(200)]),
            (minute, Some(3_600), &[None]),
            (Duration::ZERO, Some(1), &[None]),
        ];
        for (pause_max, asked, expected) in table {
            let mut retries = policy(pause_max).start();
            for expected in expected {
                let pause = retries.next_wait(asked.map(Duration::from_secs), Duration::ZERO);
                assert_eq!(pause, expected.map(Duration::from_millis), "{asked:?}");
            }
        }
    }
}
