//! What is done now and then while the server runs.

use std::sync::Arc;
use std::time::Duration;

use metering_core::{Clock, Store, StoreError};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::bot::BotChallenge;
use crate::clock_watch::ClockWatch;
use crate::http::Shutdown;
use crate::limits::Limits;

/// How often it is looked whether the store is still there.
const STORE_WATCH: Duration = Duration::from_secs(1);

const INTERVAL: Duration = Duration::from_secs(60);

/// Forgets expired records and clients that went away, so that they do not pile up, and keeps the figures small.
pub(crate) async fn maintain(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    clock_watch: Arc<ClockWatch>,
    (limits, bot_challenge): (Arc<Limits>, BotChallenge),
    metrics: PrometheusHandle,
    shutdown: Shutdown,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
        metrics.run_upkeep();
        limits.forget_idle();
        bot_challenge.forget_idle(clock.now());
        match forget_expired(&*store, &*clock, &clock_watch).await {
            Ok(0) => {}
            Ok(count) => tracing::debug!(count, "expired records were forgotten"),
            Err(error) => tracing::warn!(%error, "expired records could not be forgotten"),
        }
    }
}

/// Resolves when the store must be opened again although nothing is being charged: its files were deleted or replaced.
pub(crate) async fn watch_store(store: Arc<dyn Store>) {
    loop {
        tokio::time::sleep(STORE_WATCH).await;
        match store.check_identity().await {
            Err(error) if error.must_reopen() => {
                tracing::error!(%error, "stopping");
                return;
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// Forgets what has expired, unless the clock is not to be trusted.
async fn forget_expired(store: &dyn Store, clock: &dyn Clock, watch: &ClockWatch) -> Result<u64, StoreError> {
    match watch.trusted_now(clock, store).await? {
        Some(now) => store.forget_expired(now).await,
        None => Ok(0),
    }
}
