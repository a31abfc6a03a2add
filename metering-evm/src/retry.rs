//! The retry policy for a source: exponential backoff with jitter.

use std::time::Duration;

use metering_core::retry::{Retries, RetryPolicy, jittered};

use crate::failure::Failure;

const FIRST: Duration = Duration::from_millis(200);
/// The longest pause. If a source asks for a longer one, the request fails instead, since a caller is waiting.
const LONGEST: Duration = Duration::from_secs(5);

/// The retries of one request.
pub(crate) fn retries(max_attempts: u32) -> Retries {
    let policy = RetryPolicy::exponential(FIRST, LONGEST);
    RetryPolicy { max_attempts, longest_retry_after: LONGEST, ..policy }.start()
}

/// How long to wait after a failed attempt; `None` if a retry would not help.
pub(crate) fn pause(retries: &mut Retries, failure: &Failure) -> Option<Duration> {
    if !failure.is_transient() {
        return None;
    }
    let requested = match failure {
        // Without `Retry-After`, the usual backoff applies.
        Failure::Http { retry_after, .. } => retry_after.filter(|requested| !requested.is_zero()),
        _ => None,
    };
    let pause = retries.next_wait(requested, Duration::ZERO)?;
    // Without randomness, only the jitter is lost.
    Some(if requested.is_some() { pause } else { jittered(pause, getrandom::u32().unwrap_or(0)) })
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        for _ in 0..100 {
            let mut retries = retries(8);
            // least, most (ms)
            for (least, most) in [(100, 200), (200, 400), (400, 800), (800, 1600), (1600, 3200), (2500, 5000)] {
                let pause = pause(&mut retries, &Failure::TimedOut).unwrap().as_millis();
                assert!((least..=most).contains(&pause), "{most}: {pause}");
            }
            assert!(pause(&mut retries, &Failure::TimedOut).is_some_and(|pause| pause >= LONGEST / 2));
            assert_eq!(pause(&mut retries, &Failure::TimedOut), None, "this was the last attempt");
        }
    }

    #[test]
    fn short_retry_after_is_respected() {
        let busy = |seconds| Failure::Http {
            status: StatusCode::TOO_MANY_REQUESTS,
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(pause(&mut retries(3), &busy(2)), Some(Duration::from_secs(2)));
        assert!(pause(&mut retries(3), &busy(0)).is_some_and(|pause| pause < Duration::from_secs(1)));
        assert_eq!(pause(&mut retries(3), &busy(60)), None);
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        for failure in [Failure::WrongChain(5), Failure::NoStatus, Failure::Behind(7), Failure::TooLarge(1)] {
            assert_eq!(pause(&mut retries(3), &failure), None, "{failure}");
        }
    }
}
