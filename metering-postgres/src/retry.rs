//! The retry policy for transactions: exponential backoff with jitter, for a limited time.

use std::time::{Duration, Instant};

use crate::error::Failure;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The retries of one transaction.
#[derive(Debug)]
pub(crate) struct Backoff {
    until: Instant,
    pause: Duration,
}

impl Backoff {
    /// Starts retries within this time. The last one may end later.
    pub(crate) fn for_at_most(time: Duration) -> Self {
        Self { until: Instant::now() + time, pause: FIRST_PAUSE }
    }

    /// Waits before the next retry. Returns the failure if a retry would not help or the time is over.
    pub(crate) async fn again(&mut self, failure: Failure) -> Result<(), Failure> {
        if !failure.is_transient() || Instant::now() >= self.until {
            return Err(failure);
        }
        tracing::debug!(?failure, "retrying a transaction");
        self.wait().await;
        Ok(())
    }

    /// Waits before the next retry.
    pub(crate) async fn wait(&mut self) {
        // Half of the pause is random, so that two transactions that collided do not collide again.
        let spread = getrandom::u32().unwrap_or(0) % 512;
        tokio::time::sleep(self.pause / 2 + self.pause * spread / 1_024).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}
