//! Refills accounts with recurring credits, soon after each period begins.
//!
//! Every node does this. Each call continues where the last one stopped, on any node, so nodes share the work and no
//! account is refilled twice.

use std::sync::Arc;
use std::time::Duration;

use metering_core::store::Refilled;
use metering_core::{Clock, Credits, FullStore, StoreError};

use crate::http::Shutdown;
use crate::operations::clock_watch::ClockWatch;
use crate::operations::metrics;

/// How often to look whether a period began, or a rule was set.
const INTERVAL: Duration = Duration::from_secs(10);

/// Accounts per transaction: few enough that charges and other writes do not wait noticeably for it.
const BATCH: u32 = 200;

/// Refills accounts until shutdown. After an error it tries again. A transaction in progress is finished.
pub(crate) async fn refill(
    store: Arc<dyn FullStore>,
    clock: Arc<dyn Clock>,
    clock_watch: Arc<ClockWatch>,
    shutdown: Shutdown,
) {
    loop {
        if let Err(error) = refill_all(&*store, &*clock, &clock_watch, &shutdown).await {
            tracing::warn!(%error, "could not refill accounts; trying again");
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Refills all accounts that are due, unless the clock cannot be trusted.
async fn refill_all(
    store: &dyn FullStore,
    clock: &dyn Clock,
    watch: &ClockWatch,
    shutdown: &Shutdown,
) -> Result<(), StoreError> {
    // Without a rule there is nothing to do, and nothing to log about the clock.
    if store.refill().await?.is_none() {
        return Ok(());
    }
    let mut sum = Refilled { is_done: false, ..Refilled::NOTHING };
    while !sum.is_done && !shutdown.is_cancelled() {
        let Some(now) = watch.trusted_now(clock, store).await? else { break };
        let batch = store.refill_accounts(now, BATCH).await?;
        metrics::refilled(&batch);
        sum.accounts += batch.accounts;
        sum.credits = sum.credits.checked_add(batch.credits).unwrap_or(Credits::MAX);
        sum.is_done = batch.is_done;
    }
    if sum.accounts > 0 {
        tracing::info!(accounts = sum.accounts, credits = %sum.credits, "refilled accounts");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use metering_core::access::BudgetReset;
    use metering_core::money::Refill;
    use metering_core::store::{Created, RefillStore};
    use metering_core::{AccountId, ApiKey, NewAccount, Store, SystemRandomness, Timestamp};
    use metering_sqlite::SqliteStore;

    use super::*;

    const DAY_MILLIS: i64 = 86_400_000;
    /// 2026-11-21T12:00:00Z.
    const NOON: i64 = 1_795_262_400_000;

    #[derive(Debug)]
    struct ManualClock(AtomicI64);

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_unix_millis(self.0.load(Ordering::SeqCst))
        }
    }

    /// A store with more accounts than a batch has, all created at noon and without credits.
    async fn store(clock: &Arc<ManualClock>) -> Arc<SqliteStore> {
        let store = Arc::new(SqliteStore::in_memory().unwrap());
        for _ in 0..=BATCH {
            let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
            let new = NewAccount::new(id, "agent".parse().unwrap(), key.hash(), clock.now());
            assert!(matches!(store.create_account(new).await.unwrap(), Created::Account(_)));
        }
        let two = Credits::from_whole(2).unwrap();
        store.set_refill(Some(Refill { credits: two, every: BudgetReset::Daily, cap: two })).await.unwrap();
        store
    }

    async fn refilled(store: &dyn Store) -> usize {
        let accounts = store.accounts(None, u32::MAX).await.unwrap().items;
        accounts.iter().filter(|account| account.totals.balance.is_positive()).count()
    }

    #[tokio::test]
    async fn all_batches_of_a_period_are_refilled() {
        let clock = Arc::new(ManualClock(AtomicI64::new(NOON)));
        let (store, watch) = (store(&clock).await, ClockWatch::default());
        clock.0.fetch_add(DAY_MILLIS, Ordering::SeqCst);
        refill_all(&*store, &*clock, &watch, &Shutdown::new()).await.unwrap();
        assert_eq!(refilled(&*store).await, BATCH as usize + 1);
        refill_all(&*store, &*clock, &watch, &Shutdown::new()).await.unwrap();
        assert_eq!(store.ledger(None, u32::MAX).await.unwrap().items.len(), BATCH as usize + 1, "once");
    }

    #[tokio::test]
    async fn nobody_is_refilled_after_the_clock_jumped() {
        let clock = Arc::new(ManualClock(AtomicI64::new(NOON)));
        let (store, watch) = (store(&clock).await, ClockWatch::default());
        refill_all(&*store, &*clock, &watch, &Shutdown::new()).await.unwrap();
        clock.0.fetch_add(DAY_MILLIS, Ordering::SeqCst);
        refill_all(&*store, &*clock, &watch, &Shutdown::new()).await.unwrap();
        assert_eq!(refilled(&*store).await, 0);
    }
}
