//! Periodic background work: expiry, cleanup, and watching the store.

use std::sync::Arc;
use std::time::Duration;

use metering_core::service::UsedRoutes;
use metering_core::{Catalogue, Clock, FullStore, Store, StoreError};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::access::limits::Limits;
use crate::http::Shutdown;
use crate::operations::clock_watch::ClockWatch;
use crate::operations::metrics;
use crate::signups::bot::BotChallenge;

/// How often to check that the store's files are still the ones that were opened.
const STORE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

const INTERVAL: Duration = Duration::from_secs(60);
/// How many of these intervals pass until the most used routes are read again.
const USAGE_INTERVALS: u32 = 10;
/// How long the start waits for the most used routes. Until they are read, other routes describe the plans.
const USAGE_WAIT: Duration = Duration::from_secs(1);

/// Deletes expired records, forgets idle clients, and runs the metrics' upkeep, so that memory and database stay small.
/// Counts the pending deliveries and the unclaimed payments, and logs which sinks fail. Reads the most used routes.
pub(crate) async fn maintain(
    store: Arc<dyn FullStore>,
    clock: Arc<dyn Clock>,
    clock_watch: Arc<ClockWatch>,
    (limits, bot_challenge): (Arc<Limits>, BotChallenge),
    used: Arc<UsedRoutes>,
    recorder: PrometheusHandle,
    shutdown: Shutdown,
) {
    for intervals in 1_u32.. {
        count(&*store, &*clock).await;
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
        recorder.run_upkeep();
        limits.forget_idle();
        bot_challenge.forget_idle(clock.now());
        match forget_expired(&*store, &*clock, &clock_watch).await {
            Ok(0) => {}
            Ok(count) => tracing::debug!(count, "deleted expired records"),
            Err(error) => tracing::warn!(%error, "could not delete expired records"),
        }
        if intervals.is_multiple_of(USAGE_INTERVALS) {
            refresh(&used, &*store, &*clock).await;
        }
    }
}

async fn count(store: &dyn FullStore, clock: &dyn Clock) {
    let now = clock.now();
    match store.delivery_backlog(now).await {
        Ok(backlog) => metrics::deliveries_waiting(&backlog, now),
        Err(error) => tracing::warn!(%error, "could not count the deliveries of webhooks"),
    }
    match store.usage_sinks().await {
        Ok(sinks) => metrics::usage_sinks(&sinks, now),
        Err(error) => tracing::warn!(%error, "could not read the state of the usage sinks"),
    }
    match store.unclaimed(None, 0).await {
        Ok((_, count)) => metrics::unclaimed(count),
        Err(error) => tracing::warn!(%error, "could not count the unclaimed payments"),
    }
}

/// The most used routes at start, if the catalogue needs them.
pub(crate) async fn used_routes(store: &dyn Store, clock: &dyn Clock, catalogue: &Catalogue) -> Arc<UsedRoutes> {
    let used = Arc::new(UsedRoutes::default());
    // So that they are read.
    let _ = used.of(catalogue);
    if tokio::time::timeout(USAGE_WAIT, refresh(&used, store, clock)).await.is_err() {
        tracing::info!("reading the most used routes takes long; plans are described by other routes until then");
    }
    used
}

async fn refresh(used: &UsedRoutes, store: &dyn Store, clock: &dyn Clock) {
    if let Err(error) = used.refresh(store, clock.now()).await {
        tracing::warn!(%error, "could not read the most used routes");
    }
}

/// Resolves when the store must be reopened because its files were deleted or replaced. Detects this even while nothing
/// is being charged.
pub(crate) async fn watch_store(store: Arc<dyn Store>) {
    loop {
        tokio::time::sleep(STORE_CHECK_INTERVAL).await;
        match store.check_identity().await {
            Err(error) if error.must_reopen() => {
                tracing::error!(%error, "stopping");
                return;
            }
            Ok(()) | Err(_) => {}
        }
    }
}

/// Deletes expired records, unless the clock cannot be trusted.
async fn forget_expired(store: &dyn Store, clock: &dyn Clock, watch: &ClockWatch) -> Result<u64, StoreError> {
    match watch.trusted_now(clock, store).await? {
        Some(now) => store.forget_expired(now).await,
        None => Ok(0),
    }
}
