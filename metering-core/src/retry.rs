//! Retry policies: how often to try again, and how long to wait first.
//!
//! Pure arithmetic. The caller decides which failures to retry, measures the time, sleeps, and draws the random number
//! for the jitter.

use std::time::Duration;

/// How often, and with which waits, something is tried again.
///
/// Each wait is twice as long as the one before, up to the longest. A `Retry-After` of the service takes precedence,
/// within limits.
///
/// ```
/// use std::time::Duration;
/// use metering_core::retry::RetryPolicy;
///
/// let seconds = Duration::from_secs;
/// let policy = RetryPolicy { max_attempts: 5, ..RetryPolicy::exponential(seconds(1), seconds(3)) };
/// let mut retries = policy.start();
/// assert_eq!(retries.next_wait(None, seconds(0)), Some(seconds(1)));
/// assert_eq!(retries.next_wait(Some(seconds(20)), seconds(1)), Some(seconds(20)));
/// assert_eq!(retries.next_wait(None, seconds(21)), Some(seconds(2)));
/// assert_eq!(retries.next_wait(None, seconds(23)), Some(seconds(3)));
/// assert_eq!(retries.next_wait(None, seconds(26)), None, "this was the fifth attempt");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many attempts there are, including the first.
    pub max_attempts: u32,
    /// The first wait if the service requests none.
    pub first_wait: Duration,
    /// The longest wait if the service requests none.
    pub longest_wait: Duration,
    /// The shortest wait; a shorter `Retry-After` is raised to it.
    pub shortest_wait: Duration,
    /// There is no retry if the service requests a longer wait.
    pub longest_retry_after: Duration,
    /// No wait ends later than this after the first attempt.
    pub deadline: Duration,
}

impl RetryPolicy {
    /// Exponential backoff without an end.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use metering_core::retry::RetryPolicy;
    ///
    /// let seconds = Duration::from_secs;
    /// let mut retries = RetryPolicy::exponential(seconds(1), seconds(60)).start();
    /// let waits = (0..8).filter_map(|_| retries.next_wait(None, Duration::ZERO));
    /// assert_eq!(waits.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 60, 60].map(seconds));
    /// ```
    #[must_use]
    pub const fn exponential(first_wait: Duration, longest_wait: Duration) -> Self {
        Self {
            max_attempts: u32::MAX,
            first_wait,
            longest_wait,
            shortest_wait: first_wait,
            longest_retry_after: Duration::MAX,
            deadline: Duration::MAX,
        }
    }

    /// The retries of one operation.
    #[must_use]
    pub const fn start(self) -> Retries {
        Retries { policy: self, failed_attempts: 0, backoff: self.first_wait }
    }
}

/// The retries of one operation.
#[derive(Debug, Clone)]
pub struct Retries {
    policy: RetryPolicy,
    failed_attempts: u32,
    backoff: Duration,
}

impl Retries {
    /// How long to wait after a failed attempt; `None` if there should be no other. `retry_after` is the wait that the
    /// service requested, `elapsed` the time since the first attempt.
    pub fn next_wait(&mut self, retry_after: Option<Duration>, elapsed: Duration) -> Option<Duration> {
        self.failed_attempts = self.failed_attempts.saturating_add(1);
        let wait = retry_after.unwrap_or(self.backoff).max(self.policy.shortest_wait);
        let is_over = self.failed_attempts >= self.policy.max_attempts
            || retry_after.is_some_and(|asked| asked > self.policy.longest_retry_after)
            || elapsed.saturating_add(wait) > self.policy.deadline;
        if is_over {
            return None;
        }
        if retry_after.is_none() {
            self.backoff = self.backoff.saturating_mul(2).min(self.policy.longest_wait);
        }
        Some(wait)
    }
}

/// Between half of `wait` and all of it, depending on `random`, so callers that failed together do not retry together.
///
/// ```
/// use std::time::Duration;
///
/// use metering_core::retry::jittered;
/// use metering_core::{Randomness, SystemRandomness};
///
/// let mut random = [0; 4];
/// SystemRandomness.fill(&mut random);
/// let wait = jittered(Duration::from_secs(2), u32::from_ne_bytes(random));
/// assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&wait));
/// ```
#[must_use]
pub fn jittered(wait: Duration, random: u32) -> Duration {
    let half = wait / 2;
    half + half * (random % 1_024) / 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const POLICY: RetryPolicy = RetryPolicy::exponential(SECOND, Duration::from_secs(5));

    fn waits(policy: RetryPolicy, asked: &[Option<u64>]) -> Vec<Option<u64>> {
        let (mut retries, mut elapsed) = (policy.start(), Duration::ZERO);
        let next = |asked: &Option<u64>| {
            let wait = retries.next_wait(asked.map(Duration::from_secs), elapsed)?;
            elapsed += wait;
            Some(wait.as_secs())
        };
        asked.iter().map(next).collect()
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        assert_eq!(waits(POLICY, &[None; 5]), [1, 2, 4, 5, 5].map(Some));
        let mut retries = POLICY.start();
        let last = (0..1_000).filter_map(|_| retries.next_wait(None, Duration::MAX)).last();
        assert_eq!(last, Some(Duration::from_secs(5)));
    }

    #[test]
    fn service_sets_the_pace_within_limits() {
        let policy = RetryPolicy { longest_retry_after: Duration::from_secs(60), ..POLICY };
        let asked = [Some(60), Some(0), None, Some(61), None];
        assert_eq!(waits(policy, &asked), [Some(60), Some(1), Some(1), None, Some(2)]);
    }

    #[test]
    fn attempts_and_deadline_end_the_retries() {
        assert_eq!(waits(RetryPolicy { max_attempts: 3, ..POLICY }, &[None; 3]), [Some(1), Some(2), None]);
        assert_eq!(waits(RetryPolicy { max_attempts: 1, ..POLICY }, &[None]), [None]);
        let policy = RetryPolicy { deadline: Duration::from_secs(3), ..POLICY };
        assert_eq!(waits(policy, &[None; 3]), [Some(1), Some(2), None]);
        assert_eq!(waits(RetryPolicy { deadline: Duration::ZERO, ..POLICY }, &[Some(1)]), [None]);
    }

    #[test]
    fn jitter_keeps_at_least_half() {
        assert_eq!(jittered(SECOND, 0), SECOND / 2);
        assert_eq!(jittered(SECOND, 512), SECOND * 3 / 4);
        for random in [1_023, u32::MAX] {
            assert!((SECOND * 99 / 100..SECOND).contains(&jittered(SECOND, random)), "{random}");
        }
    }
}
