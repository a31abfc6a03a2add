//! Renews the leases of this process's holds, and settles expired holds of any process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::MeterEnd;
use super::queue::{Queue, WeakQueue};
use crate::access::account::AccountId;
use crate::charging::hold::{Held, Hold, HoldAction, HoldId, HoldUpdate};
use crate::charging::posting::Posting;
use crate::clock::{Clock, ClockSkew, Timestamp};
use crate::store::{Store, StoreError};

/// How often leases are checked.
const TICK: Duration = Duration::from_secs(1);
/// A lease is renewed after this part of it, so several renewals can fail before it ends.
const RENEWALS_PER_LEASE: u32 = 4;
/// A hold is no longer renewed after this time, because its request is stuck.
const RENEW_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// How often expired holds are looked for in the store.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// How long to wait after the store could not be read: the other processes get time to renew their leases first.
const SWEEP_PAUSE: Duration = Duration::from_secs(60);
/// How long after the end of its lease a hold is settled. The clocks of two nodes may differ by this much.
const SWEEP_GRACE: Duration = Duration::from_secs(10);
/// How many holds are settled in one batch.
const SWEEP_BATCH: u32 = 1_000;

/// This process's obligations: the holds of the requests that it serves, and refunds that cannot be posted yet.
#[derive(Debug, Default)]
pub(super) struct OpenHolds {
    holds: Mutex<HashMap<HoldId, OpenHold>>,
    refunds: AtomicUsize,
    removed: Notify,
}

/// A refund that cannot be posted yet. A drain waits for it.
#[cfg(feature = "tower")]
pub(crate) struct OwedRefund(Arc<OpenHolds>);

#[cfg(feature = "tower")]
impl Drop for OwedRefund {
    fn drop(&mut self) {
        self.0.refunds.fetch_sub(1, Ordering::SeqCst);
        self.0.removed.notify_waiters();
    }
}

#[derive(Debug)]
struct OpenHold {
    account: AccountId,
    lease: Duration,
    /// A request that is repeated has a guard for each attempt.
    guards: u32,
    opened_at: Instant,
    /// When to renew the lease.
    renew_at: Instant,
}

impl OpenHolds {
    pub(super) fn insert(&self, held: Held, account: AccountId) {
        let now = Instant::now();
        let new = || OpenHold { account, lease: held.lease, guards: 0, opened_at: now, renew_at: now };
        let mut holds = self.holds();
        let hold = holds.entry(held.id).or_insert_with(new);
        hold.guards += 1;
        hold.renew_at = now + hold.lease / RENEWALS_PER_LEASE;
    }

    pub(super) fn remove(&self, id: &HoldId) {
        let mut holds = self.holds();
        if let Some(hold) = holds.get_mut(id) {
            hold.guards -= 1;
            if hold.guards == 0 {
                holds.remove(id);
                self.removed.notify_waiters();
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.holds().len()
    }

    #[cfg(feature = "tower")]
    pub(super) fn owe_refund(self: &Arc<Self>) -> OwedRefund {
        self.refunds.fetch_add(1, Ordering::SeqCst);
        OwedRefund(Arc::clone(self))
    }

    /// Waits until no hold is open, and no refund is waiting.
    pub(super) async fn settled(&self) {
        loop {
            let removed = self.removed.notified();
            if self.len() == 0 && self.refunds.load(Ordering::SeqCst) == 0 {
                return;
            }
            removed.await;
        }
    }

    fn contains(&self, id: &HoldId) -> bool {
        self.holds().contains_key(id)
    }

    /// The renewals that are due.
    fn renewals(&self, now: Timestamp) -> Vec<HoldUpdate> {
        let at = Instant::now();
        let mut holds = self.holds();
        let due = holds.iter_mut().filter(|(_, hold)| hold.renew_at <= at && at < hold.opened_at + RENEW_FOR);
        due.map(|(id, hold)| {
            hold.renew_at = at + hold.lease / RENEWALS_PER_LEASE;
            let action = HoldAction::Renew { until: now.saturating_add(hold.lease) };
            HoldUpdate::new(hold.account.clone(), *id, action)
        })
        .collect()
    }

    /// Renews a lease with the next tick, because a renewal failed.
    fn renew_soon(&self, id: &HoldId) {
        if let Some(hold) = self.holds().get_mut(id) {
            hold.renew_at = Instant::now();
        }
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<HoldId, OpenHold>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state that both tasks of a meter share.
#[derive(Clone)]
pub(super) struct Keeper {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) open: Arc<OpenHolds>,
    pub(super) queue: WeakQueue,
}

impl Keeper {
    /// Renews and sweeps until the meter has ended. These are two tasks, because a sweep waits for the store.
    pub(super) fn start(self, ended: &watch::Receiver<Option<MeterEnd>>) {
        tokio::spawn(self.clone().renew(ended.clone()));
        tokio::spawn(self.sweep(ended.clone()));
    }

    async fn renew(self, mut ended: watch::Receiver<Option<MeterEnd>>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = ended.wait_for(Option::is_some) => return,
            }
            let Some(queue) = self.queue.upgrade() else { return };
            for renewal in self.open.renewals(self.clock.now()) {
                let id = renewal.id;
                let Ok(reply) = queue.post_now(Posting::Hold(renewal)) else { return };
                let open = Arc::clone(&self.open);
                tokio::spawn(async move {
                    if reply.outcome().await.is_err() {
                        open.renew_soon(&id);
                    }
                });
            }
        }
    }

    async fn sweep(self, mut ended: watch::Receiver<Option<MeterEnd>>) {
        let mut wait = TICK;
        loop {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = ended.wait_for(Option::is_some) => return,
            }
            let Some(queue) = self.queue.upgrade() else { return };
            wait = match self.settle_expired(&queue).await {
                Ok(found) if found == SWEEP_BATCH as usize => TICK,
                Ok(_) => SWEEP_INTERVAL,
                Err(error) => {
                    tracing::warn!(%error, "could not look for expired holds");
                    SWEEP_PAUSE
                }
            };
        }
    }

    /// Settles holds whose lease has ended, except those of this process: their renewal is late, not lost. Returns how
    /// many were found. Does nothing while the clock differs from the store's: a fast clock would end the leases of
    /// requests that other processes serve.
    async fn settle_expired(&self, queue: &Queue) -> Result<usize, StoreError> {
        let before = self.clock.now();
        let stores = self.store.clock().await?;
        if stores.is_some_and(|stores| ClockSkew::found(before, stores, self.clock.now()).is_some()) {
            return Ok(0);
        }
        let until = self.clock.now().saturating_sub(SWEEP_GRACE);
        let expired = self.store.expired_holds(until, SWEEP_BATCH).await?;
        let (found, mut replies) = (expired.len(), Vec::new());
        for Hold { id, account, .. } in expired.into_iter().filter(|hold| !self.open.contains(&hold.id)) {
            tracing::warn!(%account, %id, "settling a hold whose lease has ended");
            let update = HoldUpdate::new(account, id, HoldAction::Expire);
            replies.extend(queue.post_now(Posting::Hold(update)));
        }
        for reply in replies {
            if let Err(error) = reply.outcome().await {
                tracing::warn!(%error, "could not settle an expired hold; trying again");
            }
        }
        Ok(found)
    }
}
