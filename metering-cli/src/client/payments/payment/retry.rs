//! Waits within a time limit, and handles interruptions without losing a response.

use std::time::Duration;

use metering_core::retry::{Retries, RetryPolicy};
use tokio::time::{Instant, timeout};

use crate::failure::Failure;
use crate::output::notice;

/// How long to wait if the service does not specify it.
const PAUSE: Duration = Duration::from_secs(2);
/// The minimum pause, even if the service requests none.
const MIN_PAUSE: Duration = Duration::from_millis(200);

/// The retries of registering one payment.
#[derive(Debug)]
pub(crate) struct PaymentRetries {
    started: Instant,
    retries: Retries,
}

impl PaymentRetries {
    /// Waits at most `limit` in total.
    pub(crate) fn within(limit: Duration) -> Self {
        let policy =
            RetryPolicy { shortest_wait: MIN_PAUSE, deadline: limit, ..RetryPolicy::exponential(PAUSE, PAUSE) };
        Self { started: Instant::now(), retries: policy.start() }
    }

    /// Waits as long as the service requests. Returns `false`, immediately, if that would exceed the limit.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] when the user stops it.
    pub(crate) async fn pause(&mut self, retry_after: Option<Duration>) -> Result<bool, Failure> {
        let Some(pause) = self.retries.next_wait(retry_after, self.started.elapsed()) else { return Ok(false) };
        match timeout(pause, tokio::signal::ctrl_c()).await {
            Ok(_) => Err(interrupted()),
            Err(_) => Ok(true),
        }
    }
}

/// Lets `work` finish, because the service may return its response only once. Also returns whether the user wants to
/// stop afterwards. A second Ctrl-C stops immediately.
pub(crate) async fn uninterrupted<T>(work: impl Future<Output = T>) -> Result<(T, bool), Failure> {
    tokio::pin!(work);
    let mut stop = false;
    loop {
        tokio::select! {
            done = &mut work => return Ok((done, stop)),
            _ = tokio::signal::ctrl_c() => {
                if stop {
                    return Err(interrupted());
                }
                stop = true;
                notice("Stopping as soon as the service has responded; press Ctrl-C again to stop now.");
            }
        }
    }
}

/// The failure if the user stops it.
pub(crate) fn interrupted() -> Failure {
    Failure::Interrupted("interrupted; run the command again to continue".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_never_exceeds_the_limit() {
        let mut retries = PaymentRetries::within(Duration::from_millis(500));
        assert!(!retries.pause(Some(Duration::from_secs(12))).await.unwrap(), "returns immediately");
        assert!(retries.pause(Some(Duration::ZERO)).await.unwrap());
        assert!(retries.started.elapsed() >= MIN_PAUSE, "there is always a pause");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!retries.pause(None).await.unwrap());
        assert!(PaymentRetries::within(Duration::MAX).pause(Some(Duration::ZERO)).await.unwrap());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn uninterrupted_work_finishes() {
        assert_eq!(uninterrupted(async { 7 }).await.unwrap(), (7, false));
    }
}
