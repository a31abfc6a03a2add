//! Settles authorizations: executes and credits them.
//!
//! Each accepted authorization has a task that takes one step after another ([`next_step`]) until it is credited or has
//! failed. The requests that brought it wait for the task, but the task does not depend on them. If the process ends,
//! another one claims the authorization and continues: every decision is in the store.

mod guard;
mod permit;
mod state;
mod step;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use metering_core::chains::TxRef;
use metering_core::store::StoreError;
use tokio::sync::watch;

use crate::offers::{AuthorizationId, AuthorizationRecord, AuthorizationState, Listing};
use crate::settling::step::{Memory, Step, StepError};

pub use state::{OfferChain, Settler};
pub(super) use state::{Settling, SettlingStatus};

/// For how long an authorization is claimed. The claim is extended well before it ends.
pub(super) const LEASE: Duration = Duration::from_secs(60);
/// After failures in a row, each pause is twice as long as the one before, up to two to this power polls.
const LONGEST_PAUSE: u32 = 4;
/// How many authorizations to take over at a time.
const TAKE_OVER: u32 = 64;

/// A task that settles an authorization. When it ends, even by a panic, another may start.
struct Task {
    settling: Arc<Settling>,
    id: AuthorizationId,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.settling.tasks.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Settling {
    /// Settles an authorization in its own task, unless this process has one already. The receiver gets its
    /// status.
    pub(super) fn settle(
        self: &Arc<Self>,
        record: AuthorizationRecord,
        listing: Option<Arc<Listing>>,
    ) -> watch::Receiver<SettlingStatus> {
        let id = record.signed.id();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(status) = tasks.get(&id) {
            return status.clone();
        }
        let (sender, status) = watch::channel(SettlingStatus::InProgress);
        tasks.insert(id, status.clone());
        let task = Task { settling: Arc::clone(self), id };
        tokio::spawn(async move {
            let over = task.settling.drive(record, listing).await;
            drop(task);
            if let Some(record) = over {
                sender.send_replace(SettlingStatus::Finished(Box::new(record)));
            }
        });
        status
    }

    /// Takes over authorizations that no process is settling. Returns how many.
    pub(super) async fn take_over(self: &Arc<Self>) -> Result<usize, StoreError> {
        let claimed = self.store.claim_authorizations(self.clock.now(), LEASE, TAKE_OVER).await?;
        let count = claimed.len();
        for record in claimed {
            self.settle(record, None);
        }
        Ok(count)
    }

    /// Sends the transaction again that executed an authorization, after a reorganisation removed it. Its payment stays
    /// credited in the meantime. Another party's transaction is not resent: once the payment is reversed, the
    /// authorization is pending again.
    pub(super) async fn send_again(&self, tx: TxRef) {
        if let Err(problem) = self.try_to_send_again(tx).await {
            tracing::warn!(%tx, %problem, "a payment that is missing from its chain could not be sent again");
        }
    }

    async fn try_to_send_again(&self, tx: TxRef) -> Result<(), StepError> {
        let Some(OfferChain { settler: Settler::Own(submitter), .. }) = self.chains.get(&tx.chain_id) else {
            return Ok(());
        };
        let executed = self.store.authorization_executed_in(tx).await?;
        let submissions = executed.map(|record| record.submissions).unwrap_or_default();
        match submissions.iter().find(|submission| submission.hash == tx.hash) {
            Some(submission) => submitter.send(submission).await.map_err(StepError::Submit),
            None => Ok(()),
        }
    }

    /// Takes one step after another. Returns the record when it is credited or has failed, or `None` when this process
    /// cannot continue.
    async fn drive(
        &self,
        mut record: AuthorizationRecord,
        listing: Option<Arc<Listing>>,
    ) -> Option<AuthorizationRecord> {
        let id = record.signed.id();
        let Some(chain) = self.chains.get(&id.chain_id) else {
            tracing::error!(chain_id = id.chain_id, payer = %id.payer, "an authorization is on a chain that is not configured");
            return None;
        };
        let mut memory = Memory::of(listing);
        let (mut claimed_at, mut failures) = (self.clock.now(), 0);
        loop {
            if record.state != AuthorizationState::Pending {
                return Some(record);
            }
            let step = Step { settling: self, chain, record: &record, memory: &mut memory };
            let pause = match step.take().await {
                Ok(is_to_wait) => {
                    failures = 0;
                    if is_to_wait { self.poll } else { Duration::ZERO }
                }
                Err(problem) => {
                    tracing::warn!(payer = %id.payer, nonce = %id.nonce, %problem, "a payment could not be settled yet");
                    let pause = self.poll.saturating_mul(1 << failures);
                    failures = LONGEST_PAUSE.min(failures + 1);
                    pause
                }
            };
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let now = self.clock.now();
            if now >= claimed_at.saturating_add(LEASE / 3) {
                claimed_at = now;
                if let Err(error) = self.store.extend_claim(&id, now.saturating_add(LEASE)).await {
                    tracing::warn!(%error, "the claim of an authorization could not be extended");
                }
            }
            match self.store.authorization(&id).await {
                Ok(Some(read)) => record = read,
                Ok(None) => return None,
                Err(error) => tracing::warn!(%error, "an authorization could not be read; trying again"),
            }
        }
    }
}
