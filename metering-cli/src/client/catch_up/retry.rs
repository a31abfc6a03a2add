//! The retry policy for one block, as pure logic without a service or a clock.

use std::time::Duration;

use metering_client::ClientError;

/// The first pause if the service does not ask for one; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The shortest pause, even if the service asks for none.
const MIN_PAUSE: Duration = Duration::from_millis(200);
/// How many times a block is requested, including the first.
const MAX_ATTEMPTS: u32 = 5;

/// The attempts that are left for one block.
#[derive(Debug)]
pub(super) struct RetryPolicy {
    pause_max: Duration,
    next: Duration,
    attempts_left: u32,
}

/// What a failed request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Retry after this pause.
    Pause(Duration),
    /// The block does not exist, now or later.
    Missing,
    /// A retry would not help, or not soon enough.
    Stop,
}

impl RetryPolicy {
    /// Stops if the service asks for a pause longer than `pause_max`.
    pub(super) const fn new(pause_max: Duration) -> Self {
        Self { pause_max, next: FIRST_PAUSE, attempts_left: MAX_ATTEMPTS }
    }

    /// Judges a failed request for a block.
    pub(super) fn decide(&mut self, error: &ClientError) -> Verdict {
        let named = match error {
            ClientError::Garbled(_) => return Verdict::Stop,
            ClientError::Unreachable(_) => None,
            ClientError::Refused(refusal) => match (refusal.status.as_u16(), refusal.code.as_str()) {
                // The gateway's own 404, which says nothing about the block, and a block that is not final yet.
                (404, "unknown_route" | "block_not_final") => return Verdict::Stop,
                (404 | 410, _) => return Verdict::Missing,
                // Rejected without a charge, or refunded.
                (429 | 502..=504, _) => refusal.retry_after,
                _ => return Verdict::Stop,
            },
        };
        self.attempts_left = self.attempts_left.saturating_sub(1);
        let pause = named.unwrap_or(self.next).max(MIN_PAUSE);
        if self.attempts_left == 0 || named.is_some_and(|named| named > self.pause_max) {
            return Verdict::Stop;
        }
        if named.is_none() {
            self.next *= 2;
        }
        Verdict::Pause(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_client::{Refusal, Unreachable};

    const MINUTE: Duration = Duration::from_secs(60);

    fn refused(status: u16, code: &str, retry_after: Option<u64>) -> ClientError {
        let mut headers = http::HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert("retry-after", seconds.into());
        }
        let body = format!(r#"{{"error":"{code}","message":"Sentence."}}"#);
        Refusal::read(http::StatusCode::from_u16(status).unwrap(), &headers, body.into()).into()
    }

    #[test]
    fn only_temporary_uncharged_failures_are_retried() {
        let pause = |seconds| Verdict::Pause(Duration::from_secs(seconds));
        let first = Verdict::Pause(FIRST_PAUSE);
        // status, code, retry after, verdict
        let table = [
            (429, "rate_limited", Some(30), pause(30)),
            (429, "rate_limited", Some(60), pause(60)),
            (429, "rate_limited", Some(61), Verdict::Stop),
            (429, "rate_limited", Some(0), Verdict::Pause(MIN_PAUSE)),
            (429, "rate_limited", None, first),
            (503, "overloaded", Some(1), pause(1)),
            (503, "overloaded", Some(3_600), Verdict::Stop),
            (502, "upstream_unreachable", None, first),
            (504, "upstream_timeout", None, first),
            (500, "internal", Some(1), Verdict::Stop),
            (400, "invalid_parameter", None, Verdict::Stop),
            (401, "unauthorized", None, Verdict::Stop),
            (402, "insufficient_credits", None, Verdict::Stop),
            (404, "unknown_block", None, Verdict::Missing),
            (404, "http_404", None, Verdict::Missing),
            (410, "pruned", None, Verdict::Missing),
            (404, "unknown_route", None, Verdict::Stop),
            (404, "block_not_final", None, Verdict::Stop),
        ];
        for (status, code, retry_after, verdict) in table {
            assert_eq!(
                RetryPolicy::new(MINUTE).decide(&refused(status, code, retry_after)),
                verdict,
                "{status} {code}"
            );
        }
        assert_eq!(RetryPolicy::new(MINUTE).decide(&ClientError::Garbled("x".to_owned())), Verdict::Stop);
        assert_eq!(RetryPolicy::new(MINUTE).decide(&Unreachable("x".to_owned()).into()), first);
    }

    #[test]
    fn pauses_double_and_end() {
        let mut retries = RetryPolicy::new(MINUTE);
        let away = ClientError::from(Unreachable("away".to_owned()));
        let pauses: Vec<_> = std::iter::from_fn(|| match retries.decide(&away) {
            Verdict::Pause(pause) => Some(pause.as_millis()),
            _ => None,
        })
        .collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000]);
    }

    #[test]
    fn persistent_rate_limit_stops_the_retries() {
        let mut retries = RetryPolicy::new(MINUTE);
        let capped = refused(429, "rate_limited", Some(60));
        let verdicts: Vec<_> = (0..5).map(|_| retries.decide(&capped)).collect();
        assert_eq!(verdicts[3..], [Verdict::Pause(MINUTE), Verdict::Stop]);
    }

    #[test]
    fn zero_wait_stops_at_a_rate_limit() {
        assert_eq!(RetryPolicy::new(Duration::ZERO).decide(&refused(429, "rate_limited", Some(1))), Verdict::Stop);
    }
}
