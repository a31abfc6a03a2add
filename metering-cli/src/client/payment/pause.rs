//! Waiting, for as long as it was allowed, and being interrupted without losing an answer.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::failure::Failure;
use crate::output::notice;

/// How long to wait where the service does not say.
const PAUSE: Duration = Duration::from_secs(2);
/// A service that says 0 is not asked without a pause.
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// How long waiting is allowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    begun: Instant,
    wait: Duration,
}

impl Patience {
    pub(crate) fn of(wait: Duration) -> Self {
        Self { begun: Instant::now(), wait }
    }

    /// Waits as long as the service says; `false`, at once, when that is longer than is allowed.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] when the person stops it.
    pub(crate) async fn pause(self, retry_after: Option<Duration>) -> Result<bool, Failure> {
        let pause = retry_after.unwrap_or(PAUSE).max(PAUSE_MIN);
        if self.begun.elapsed().saturating_add(pause) > self.wait {
            return Ok(false);
        }
        match timeout(pause, tokio::signal::ctrl_c()).await {
            Ok(_) => Err(interrupted()),
            Err(_) => Ok(true),
        }
    }
}

/// Lets `work` come to its end, since its answer may be given only once. Returns whether the person wants to stop then;
/// who says so twice does not want to wait for it.
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
                notice("Stopping as soon as the service has answered; once more to stop at once.");
            }
        }
    }
}

/// What to say when the person stopped it.
pub(crate) fn interrupted() -> Failure {
    Failure::Interrupted("interrupted; run the command again to go on".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn waiting_ends_before_it_takes_longer_than_is_allowed() {
        let patience = Patience::of(Duration::from_millis(500));
        assert!(!patience.pause(Some(Duration::from_secs(12))).await.unwrap(), "at once");
        assert!(patience.pause(Some(Duration::ZERO)).await.unwrap());
        assert!(patience.begun.elapsed() >= PAUSE_MIN, "nobody is asked without a pause");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!patience.pause(None).await.unwrap());
        assert!(Patience::of(Duration::MAX).pause(Some(Duration::ZERO)).await.unwrap());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn work_that_is_left_alone_ends_by_itself() {
        assert_eq!(uninterrupted(async { 7 }).await.unwrap(), (7, false));
    }
}
