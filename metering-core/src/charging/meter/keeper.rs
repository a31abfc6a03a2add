//! The task that keeps holds: it renews the leases of those that this process serves, and settles those, of any
//! process, whose lease has ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::MeterEnd;
use super::queue::{Queue, WeakQueue};
use crate::access::account::AccountId;
use crate::charging::hold::{Held, Hold, HoldAction, HoldId, HoldUpdate};
use crate::charging::posting::Posting;
use crate::clock::{Clock, Timestamp};
use crate::store::Store;

/// How often leases are looked at.
const TICK: Duration = Duration::from_secs(1);
/// How often holds whose lease has ended are looked for in the store.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// How many of them are settled in one batch.
const SWEEP_BATCH: u32 = 1_000;

/// The holds of the requests that this process serves.
#[derive(Debug, Default)]
pub(super) struct OpenHolds {
    holds: Mutex<HashMap<HoldId, OpenHold>>,
}

#[derive(Debug)]
struct OpenHold {
    account: AccountId,
    lease: Duration,
    /// When the lease is to be renewed.
    renew_at: Instant,
}

impl OpenHolds {
    pub(super) fn insert(&self, held: Held, account: AccountId) {
        let hold = OpenHold { account, lease: held.lease, renew_at: Instant::now() + held.lease / 2 };
        self.holds().insert(held.id, hold);
    }

    pub(super) fn remove(&self, id: &HoldId) {
        self.holds().remove(id);
    }

    pub(super) fn len(&self) -> usize {
        self.holds().len()
    }

    fn contains(&self, id: &HoldId) -> bool {
        self.holds().contains_key(id)
    }

    /// The renewals that are due.
    fn renewals(&self, now: Timestamp) -> Vec<HoldUpdate> {
        let at = Instant::now();
        let mut holds = self.holds();
        let due = holds.iter_mut().filter(|(_, hold)| hold.renew_at <= at);
        due.map(|(id, hold)| {
            hold.renew_at = at + hold.lease / 2;
            let action = HoldAction::Renew { until: now.saturating_add(hold.lease) };
            HoldUpdate { account: hold.account.clone(), id: *id, action, delivery: None }
        })
        .collect()
    }

    fn holds(&self) -> MutexGuard<'_, HashMap<HoldId, OpenHold>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Keeper {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) open: Arc<OpenHolds>,
    pub(super) queue: WeakQueue,
}

impl Keeper {
    /// Runs until the meter has ended.
    pub(super) async fn run(self, mut ended: watch::Receiver<Option<MeterEnd>>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_sweep = Instant::now();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = ended.wait_for(Option::is_some) => return,
            }
            let Some(queue) = self.queue.upgrade() else { return };
            self.renew(&queue);
            if next_sweep <= Instant::now() {
                self.sweep(&queue).await;
                next_sweep = Instant::now() + SWEEP_INTERVAL;
            }
        }
    }

    fn renew(&self, queue: &Queue) {
        for renewal in self.open.renewals(self.clock.now()) {
            // One that fails is due again before the lease ends.
            drop(queue.post_now(Posting::Hold(renewal)));
        }
    }

    /// Settles the holds whose lease has ended, except those of this process: their renewal is late, not lost.
    async fn sweep(&self, queue: &Queue) {
        let expired = match self.store.expired_holds(self.clock.now(), SWEEP_BATCH).await {
            Ok(expired) => expired,
            Err(error) => return tracing::warn!(%error, "could not look for holds whose lease has ended"),
        };
        let mut replies = Vec::new();
        for Hold { id, account, .. } in expired.into_iter().filter(|hold| !self.open.contains(&hold.id)) {
            tracing::warn!(%account, %id, "settling a hold whose lease has ended");
            let update = HoldUpdate { account, id, action: HoldAction::Expire, delivery: None };
            replies.extend(queue.post_now(Posting::Hold(update)));
        }
        for reply in replies {
            if let Err(error) = reply.outcome().await {
                tracing::warn!(%error, "could not settle a hold whose lease has ended; trying again");
            }
        }
    }
}
