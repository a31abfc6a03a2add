//! Trying again what the database could not do, for a while.

use std::time::{Duration, Instant};

use crate::error::Failure;

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The tries of one transaction.
#[derive(Debug)]
pub(crate) struct Tries {
    until: Instant,
    pause: Duration,
}

impl Tries {
    /// Tries for at most so long, the last one aside.
    pub(crate) fn for_at_most(time: Duration) -> Self {
        Self { until: Instant::now() + time, pause: FIRST_PAUSE }
    }

    /// Waits before the next try, or gives the failure back when another would not help or the time is over.
    pub(crate) async fn again(&mut self, failure: Failure) -> Result<(), Failure> {
        if !failure.is_transient() || Instant::now() >= self.until {
            return Err(failure);
        }
        tracing::debug!(?failure, "a transaction is tried again");
        self.wait().await;
        Ok(())
    }

    /// Waits as before the next try.
    pub(crate) async fn wait(&mut self) {
        // Half of it by chance, so that two that met do not meet again.
        let spread = getrandom::u32().unwrap_or(0) % 512;
        tokio::time::sleep(self.pause / 2 + self.pause * spread / 1_024).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Whether the time is over.
    pub(crate) fn are_over(&self) -> bool {
        Instant::now() >= self.until
    }
}
