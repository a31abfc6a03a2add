//! Enforces the configured retention, a slice a minute.

use std::sync::Arc;
use std::time::Duration;

use metering_core::operators::Retention;
use metering_core::store::Cursor;
use metering_core::{Clock, FullStore, StoreError};

use crate::http::Shutdown;
use crate::operations::clock_watch::ClockWatch;

const INTERVAL: Duration = Duration::from_secs(60);

/// Runs until the shutdown, or ends immediately if everything is kept.
pub(crate) async fn enforce(
    store: Arc<dyn FullStore>,
    clock: Arc<dyn Clock>,
    clock_watch: Arc<ClockWatch>,
    kept: Retention,
    shutdown: Shutdown,
) {
    if kept.is_unlimited() {
        return;
    }
    // The last account whose recent activity was read.
    let mut after = None;
    loop {
        match forget(&*store, &*clock, &clock_watch, &kept, after.as_ref()).await {
            Ok((count, next)) => {
                after = next;
                if count > 0 {
                    tracing::debug!(count, "deleted records past their retention");
                }
            }
            Err(error) => tracing::warn!(%error, "could not delete records past their retention"),
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Deletes nothing while the clock cannot be trusted.
async fn forget(
    store: &dyn FullStore,
    clock: &dyn Clock,
    watch: &ClockWatch,
    kept: &Retention,
    after: Option<&Cursor>,
) -> Result<(u64, Option<Cursor>), StoreError> {
    match watch.trusted_now(clock, store).await? {
        Some(now) => store.forget_older(kept, now, after).await,
        None => Ok((0, after.cloned())),
    }
}
