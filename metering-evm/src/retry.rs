//! The retry policy for a source: exponential backoff with jitter.

use std::time::Duration;

use crate::failure::Failure;

/// The first pause. Each one after it is twice as long.
const FIRST: Duration = Duration::from_millis(200);
/// The longest pause. If a source asks for a longer one, the request fails instead, since a caller is waiting.
const LONGEST: Duration = Duration::from_secs(5);

/// How long to wait after a failed attempt, counted from 1; `None` if a retry would not help.
pub(crate) fn pause(attempt: u32, failure: &Failure) -> Option<Duration> {
    if !failure.is_transient() {
        return None;
    }
    let requested = match failure {
        Failure::Http { retry_after: Some(requested), .. } => *requested,
        _ => Duration::ZERO,
    };
    let backoff = FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST);
    (requested <= LONGEST).then(|| jittered(backoff).max(requested))
}

/// A random pause between half of `pause` and all of it, so that requests that failed together do not retry together.
fn jittered(pause: Duration) -> Duration {
    let half = pause / 2;
    // If there is no randomness, only the jitter is lost.
    let share = getrandom::u32().unwrap_or(0) % 1024;
    half + half * share / 1024
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        // attempt, least, most (ms)
        let table = [(1, 100, 200), (2, 200, 400), (3, 400, 800), (6, 2500, 5000), (u32::MAX, 2500, 5000)];
        for (attempt, least, most) in table {
            for _ in 0..100 {
                let pause = pause(attempt, &Failure::TimedOut).unwrap().as_millis();
                assert!((least..=most).contains(&pause), "{attempt}: {pause}");
            }
        }
    }

    #[test]
    fn short_retry_after_is_respected() {
        let busy = |seconds| Failure::Http {
            status: StatusCode::TOO_MANY_REQUESTS,
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(pause(1, &busy(2)), Some(Duration::from_secs(2)));
        assert!(pause(1, &busy(0)).is_some_and(|pause| pause < Duration::from_secs(1)));
        assert_eq!(pause(1, &busy(60)), None);
    }

    #[test]
    fn permanent_errors_are_not_retried() {
        for failure in [Failure::WrongChain(5), Failure::NoStatus, Failure::Behind(7), Failure::TooLarge(1)] {
            assert_eq!(pause(1, &failure), None, "{failure}");
        }
    }
}
