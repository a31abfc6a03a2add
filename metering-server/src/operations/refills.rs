//! Refills accounts with recurring credits, soon after each period begins.
//!
//! Every node does this. Each call continues where the last one stopped, on whichever node that was, so nodes share the
//! work and no account is refilled twice.

use std::sync::Arc;
use std::time::Duration;

use metering_core::store::{RefillStore, Refilled};
use metering_core::{Clock, FullStore, StoreError};

use crate::http::Shutdown;
use crate::operations::clock_watch::ClockWatch;
use crate::operations::metrics;

/// How often to look whether a period began, or a rule was set.
const INTERVAL: Duration = Duration::from_secs(20);

/// Accounts per transaction: few enough that charges and other writes do not wait noticeably for it.
const BATCH: u32 = 200;

/// Refills accounts until shutdown. After an error it tries again.
pub(crate) async fn refill(
    store: Arc<dyn FullStore>,
    clock: Arc<dyn Clock>,
    clock_watch: Arc<ClockWatch>,
    shutdown: Shutdown,
) {
    loop {
        tokio::select! {
            result = refill_all(&*store, &*clock, &clock_watch) => {
                if let Err(error) = result {
                    tracing::warn!(%error, "could not refill accounts; trying again");
                }
            }
            () = shutdown.cancelled() => return,
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Refills all accounts that are due, unless the clock cannot be trusted.
async fn refill_all(store: &dyn FullStore, clock: &dyn Clock, watch: &ClockWatch) -> Result<(), StoreError> {
    // Without a rule there is nothing to do, and nothing to log about the clock.
    if store.refill().await?.is_none() {
        return Ok(());
    }
    let mut sum = Refilled { is_done: false, ..Refilled::NOTHING };
    while !sum.is_done {
        let Some(now) = watch.trusted_now(clock, store).await? else { break };
        let batch = store.refill_accounts(now, BATCH).await?;
        metrics::refilled(&batch);
        sum.accounts += batch.accounts;
        sum.credits = sum.credits.checked_add(batch.credits).unwrap_or(metering_core::Credits::MAX);
        sum.is_done = batch.is_done;
    }
    if sum.accounts > 0 {
        tracing::info!(accounts = sum.accounts, credits = %sum.credits, "refilled accounts");
    }
    Ok(())
}
