//! [`HoldGuard`]: a hold of a request that this process serves. It is settled exactly once, whatever happens to the
//! request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tracing::{Instrument, info_span};

use super::MeterError;
use super::keeper::OpenHolds;
use super::queue::Queue;
use crate::charging::charge::Receipt;
use crate::charging::hold::{HoldAction, HoldUpdate, HoldUpdated};
use crate::charging::in_flight::Slot;
use crate::charging::posting::{Outcome, Posting};
use crate::money::credits::Credits;
use crate::retry::RetryPolicy;
use crate::trace;

/// Settling is retried for as long as the process runs: only this process knows the cost.
const RETRIES: RetryPolicy = RetryPolicy::exponential(Duration::from_millis(100), Duration::from_secs(5));

/// A request whose credits are held. Capture the cost; if the guard is dropped instead, the hold captures its
/// [fallback](crate::charging::HoldTerms::fallback).
///
/// While the guard exists, its meter renews the lease of the hold, for a day at most. A request id without an
/// idempotency key can be repeated while the first request is still being served: the guard of the repetition
/// ([`Receipt::repeated`]) settles nothing when it is dropped.
///
/// [`Meter::hold`](crate::Meter::hold) has an example.
pub struct HoldGuard {
    receipt: Receipt,
    /// `None` once the hold is being settled.
    keeping: Option<Keeping>,
    /// Boxed, because most requests record nothing and are moved often.
    noted: Option<Box<Noted>>,
}

/// The request's cost and tokens, as known when its hold is settled.
#[derive(Default)]
struct Noted {
    /// The tokens that it used.
    tokens: Option<u32>,
    /// The upstream that served it, if its route names any.
    upstream: Option<Arc<str>>,
}

/// The data needed to settle the hold and renew its lease.
struct Keeping {
    queue: Queue,
    open: Arc<OpenHolds>,
}

impl HoldGuard {
    /// A guard for the hold of this receipt.
    ///
    /// # Errors
    /// The receipt, if it does not belong to a hold.
    #[expect(clippy::result_large_err, reason = "the receipt is handed back")]
    pub(super) fn new(receipt: Receipt, queue: Queue, open: Arc<OpenHolds>) -> Result<Self, Receipt> {
        let Some(held) = receipt.hold else { return Err(receipt) };
        open.insert(held, receipt.account.clone());
        Ok(Self { receipt, keeping: Some(Keeping { queue, open }), noted: None })
    }

    /// The held amount, and its account.
    #[must_use]
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Takes the slot that counts the request as in flight, if its key has a limit on that. Without this call, the slot
    /// is freed with the guard.
    pub fn take_slot(&mut self) -> Option<Slot> {
        self.receipt.slot.take()
    }

    /// Notes the tokens that the request used: when its cost is captured, they count towards limits on tokens per minute,
    /// instead of those that it was expected to use. `None` if they are not known.
    pub fn used_tokens(&mut self, tokens: Option<u32>) {
        self.noted.get_or_insert_default().tokens = tokens;
    }

    /// Notes which upstream served the request, to be stored when the hold is settled.
    pub fn served_by(&mut self, upstream: Arc<str>) {
        self.noted.get_or_insert_default().upstream = Some(upstream);
    }

    /// Captures the request's cost, at most the hold, and releases the rest. When this returns, it is on disk.
    ///
    /// Once the returned future has been polled, it is captured even if the future is dropped, and tried again for as
    /// long as the store is unavailable: use a timeout where a client waits. [`HoldUpdated::changed`] is `false` if the
    /// hold was settled before: its lease had ended, or it belongs to a repeated request that was captured already.
    ///
    /// # Errors
    /// When the meter has ended. The fallback is then captured when the lease ends.
    pub async fn capture(self, cost: Credits) -> Result<HoldUpdated, MeterError> {
        self.settle(HoldAction::Capture { cost, may_exceed: false }).await
    }

    /// Captures the request's cost, even if it exceeds the hold. The balance may then go below zero, and the budgets of
    /// its keys may be exceeded.
    ///
    /// # Errors
    /// As [`HoldGuard::capture`].
    pub async fn capture_in_full(self, cost: Credits) -> Result<HoldUpdated, MeterError> {
        self.settle(HoldAction::Capture { cost, may_exceed: true }).await
    }

    /// Captures the fallback, because the request has ended and its cost is not known.
    ///
    /// # Errors
    /// As [`HoldGuard::capture`].
    pub async fn capture_fallback(self) -> Result<HoldUpdated, MeterError> {
        self.settle(HoldAction::CaptureFallback).await
    }

    /// Captures nothing, because the request was not served.
    ///
    /// # Errors
    /// As [`HoldGuard::capture`].
    pub async fn release(self) -> Result<HoldUpdated, MeterError> {
        self.settle(HoldAction::Release).await
    }

    /// Settles the hold, in a separate task.
    async fn settle(mut self, action: HoldAction) -> Result<HoldUpdated, MeterError> {
        let (Some(keeping), Some(mut update)) = (self.keeping.take(), self.receipt.hold_update(action)) else {
            return Err(MeterError::Closed);
        };
        if let Some(noted) = self.noted.take() {
            (update.tokens, update.upstream) = (noted.tokens, noted.upstream);
        }
        let settling = async move {
            let settled = keeping.settle(&update).await;
            keeping.open.remove(&update.id);
            if let Err(error) = &settled {
                let (account, id) = (&update.account, update.id);
                tracing::error!(%error, %account, %id, "a hold could not be settled; it is settled by its rule later");
            }
            settled
        };
        let settled = tokio::spawn(settling.instrument(info_span!(target: trace::TARGET, "settle_hold")));
        settled.await.unwrap_or(Err(MeterError::Closed))
    }
}

impl Keeping {
    async fn settle(&self, update: &HoldUpdate) -> Result<HoldUpdated, MeterError> {
        let (mut retries, mut is_known) = (RETRIES.start(), true);
        loop {
            let error = match self.try_settle(update).await {
                // An earlier attempt whose outcome was unknown has settled it.
                Ok(updated) => return Ok(HoldUpdated { changed: updated.changed || !is_known, ..updated }),
                Err(error @ (MeterError::Store(_) | MeterError::Overloaded)) => error,
                Err(error) => return Err(error),
            };
            is_known &= !error.outcome_is_unknown();
            match retries.next_wait(None, Duration::ZERO) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }

    async fn try_settle(&self, update: &HoldUpdate) -> Result<HoldUpdated, MeterError> {
        match self.queue.post(Posting::Hold(update.clone())).await?.outcome().await? {
            Outcome::Hold(Some(updated)) => Ok(updated),
            // Only happens if the store lost the hold.
            _ => Err(MeterError::NoSuchHold),
        }
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let Some(keeping) = self.keeping.take() else { return };
        let is_of_another = self.receipt.repeated && self.receipt.delivery.is_none();
        if let Some(mut update) = self.receipt.hold_update(HoldAction::CaptureFallback) {
            let id = update.id;
            update.upstream = self.noted.take().and_then(|noted| noted.upstream);
            if !is_of_another {
                // If it cannot be recorded now, the end of the lease has the same effect.
                drop(keeping.queue.post_now(Posting::Hold(update)));
            }
            // Last: a drain waits until no hold is open.
            keeping.open.remove(&id);
        }
    }
}

impl fmt::Debug for HoldGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.keeping.is_some();
        f.debug_struct("HoldGuard").field("receipt", &self.receipt).field("open", &open).finish()
    }
}
