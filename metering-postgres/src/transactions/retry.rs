//! Retries of database work: exponential backoff with jitter, for a limited time.

use std::time::{Duration, Instant};

use metering_core::retry::{Retries, RetryPolicy, jittered};

use crate::error::{Failure, Result};

/// How long reads and writes are retried.
pub(crate) const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The retries of one piece of work.
#[derive(Debug)]
pub(crate) struct Backoff {
    started: Instant,
    retries: Retries,
}

impl Backoff {
    /// Starts retries within this time. The last one may end later.
    pub(crate) fn for_at_most(time: Duration) -> Self {
        let policy = RetryPolicy { deadline: time, ..RetryPolicy::exponential(FIRST_PAUSE, LONGEST_PAUSE) };
        Self { started: Instant::now(), retries: policy.start() }
    }

    /// Waits before the next retry. Returns the failure if a retry would not help or the time is over.
    pub(crate) async fn again(&mut self, failure: Failure) -> Result<()> {
        if !failure.is_transient() || !self.wait(None).await {
            return Err(failure);
        }
        tracing::debug!(?failure, "retrying a transaction");
        Ok(())
    }

    /// Waits before the next retry, for `pause` if it is given. Returns `false`, immediately, if the time is over.
    pub(crate) async fn wait(&mut self, pause: Option<Duration>) -> bool {
        let Some(wait) = self.retries.next_wait(pause, self.started.elapsed()) else { return false };
        // If there is no randomness, only the jitter is lost.
        let wait = if pause.is_some() { wait } else { jittered(wait, getrandom::u32().unwrap_or(0)) };
        tokio::time::sleep(wait).await;
        true
    }
}

/// Runs `attempt` until it succeeds. Retries transient failures.
pub(crate) async fn retried<T, A: Future<Output = Result<T>>>(mut attempt: impl FnMut() -> A) -> Result<T> {
    let mut backoff = Backoff::for_at_most(RETRY_TIMEOUT);
    loop {
        match attempt().await {
            Ok(result) => return Ok(result),
            Err(failure) => backoff.again(failure).await?,
        }
    }
}
