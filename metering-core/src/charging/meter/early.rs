//! Charges whose requests are served while they are flushed, or decided.

use std::fmt;

use tracing::field::Empty;
use tracing::{Instrument, info_span};

use super::expected::ExpectedCharge;
use super::reply::{Reply, early_slot};
use super::{Meter, MeterError};
use crate::charging::charge::{Charge, Decision, Receipt};
use crate::charging::in_flight::Slot;
use crate::charging::posting::{Outcome, Posting};
use crate::charging::refusal::Refusal;
use crate::trace;

/// The decision on a charge that may not be on disk yet.
#[derive(Debug)]
pub enum EarlyDecision {
    /// Charged. Serve the request, and pass nothing of its response on before the charge is
    /// [on disk](EarlyReceipt::on_disk).
    Accepted(EarlyReceipt),
    /// Not decided yet, but it will clearly be accepted. Serve the request, and pass nothing of its response on before
    /// the decision.
    Expected(ExpectedCharge),
    /// Not charged; do not serve the request.
    Refused(Refusal),
}

/// The receipt of a charge that may not be on disk yet. [`EarlyReceipt::on_disk`] makes it a [`Receipt`].
///
/// If it is dropped, the charge stays recorded once it is on disk.
#[must_use = "nothing may be passed on before the charge is on disk"]
pub struct EarlyReceipt {
    receipt: Receipt,
    /// `None` once it is on disk.
    flush: Option<Reply>,
}

impl Meter {
    /// Charges a request like [`Meter::charge`], and returns as soon as it is decided, perhaps before it is on disk, or
    /// as soon as the decision is clear: the request can be served in the meantime. A refusal comes after the flush, as
    /// with [`Meter::charge`].
    ///
    /// Only a store that [commits on a thread of its own](crate::Store::commit_from) has a decision early. With any
    /// other store, this returns at once if the charge will clearly be accepted: if this meter charged the same key,
    /// for a request to the same route from the same address, within the last second, and the remaining balance and
    /// rate limits were far more than the charge needs. Everything else, holds and charges with a request id wait as
    /// with [`Meter::charge`].
    ///
    /// ```
    /// use metering_core::charging::EarlyDecision;
    /// use metering_core::{Charge, Decision, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// # async fn read_price() -> String { "17".to_owned() }
    /// let charge = Charge::new(&key, "0.25".parse()?, "GET", "/price");
    /// let early = service.meter().charge_early(charge).await?;
    /// if let EarlyDecision::Refused(refusal) = early {
    ///     return Err(refusal.into());
    /// }
    /// let price = read_price().await;
    /// // Drop the price if this fails, or if the charge was refused after all.
    /// match early.on_disk().await? {
    ///     Decision::Accepted(receipt) => println!("{price}, paid by {}", receipt.account),
    ///     Decision::Refused(refusal) => return Err(refusal.into()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the charge could not be decided.
    pub async fn charge_early(&self, charge: Charge) -> Result<EarlyDecision, MeterError> {
        if charge.hold.is_some() || charge.request_id.is_some() {
            return Ok(EarlyDecision::of(self.charge(charge).await?, None));
        }
        if let Some(started) = self.views.start(&charge) {
            return self.post_started(charge, started).map(EarlyDecision::Expected);
        }
        let span = info_span!(target: trace::TARGET, "charge", metering.decision = Empty);
        let (decision, flush) = self.decide_early(charge).instrument(span.clone()).await?;
        span.record("metering.decision", decision.name());
        Ok(EarlyDecision::of(decision, flush))
    }

    async fn decide_early(&self, charge: Charge) -> Result<(Decision, Option<Reply>), MeterError> {
        let posted = self.count_overload(self.queue.try_post(Posting::Charge(charge), early_slot()));
        match posted?.decided().await? {
            (Outcome::Decided(decision), flush) => Ok((decision, flush)),
            (other, _) => unreachable!("a store decides a charge, but the outcome was {other:?}"),
        }
    }
}

impl EarlyDecision {
    fn of(decision: Decision, flush: Option<Reply>) -> Self {
        match decision {
            Decision::Accepted(receipt) => Self::Accepted(EarlyReceipt { receipt, flush }),
            Decision::Refused(refusal) => Self::Refused(refusal),
        }
    }

    /// Waits until it is decided, and on disk if it was accepted.
    ///
    /// # Errors
    /// When that failed: pass nothing on. Nothing was charged, unless [`MeterError::outcome_is_unknown`].
    pub async fn on_disk(self) -> Result<Decision, MeterError> {
        match self {
            Self::Accepted(early) => early.on_disk().await.map(Decision::Accepted),
            Self::Expected(charge) => charge.await,
            Self::Refused(refusal) => Ok(Decision::Refused(refusal)),
        }
    }
}

impl EarlyReceipt {
    /// The account and amount of the charge, if it gets to disk.
    #[must_use]
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// Takes the slot that counts the request as in flight, if its key has a limit on that. Without this call, it is
    /// freed with the receipt.
    pub fn take_slot(&mut self) -> Option<Slot> {
        self.receipt.slot.take()
    }

    /// Whether the charge is known to be on disk.
    #[must_use]
    pub const fn is_on_disk(&self) -> bool {
        self.flush.is_none()
    }

    /// Waits until the charge is on disk.
    ///
    /// # Errors
    /// When the charge did not get to disk: pass nothing on. Nothing was charged, unless
    /// [`MeterError::outcome_is_unknown`].
    pub async fn on_disk(mut self) -> Result<Receipt, MeterError> {
        self.flushed().await?;
        Ok(self.receipt)
    }

    /// Waits as [`EarlyReceipt::on_disk`] does, and keeps the receipt: the future may be dropped, and another one awaited.
    ///
    /// # Errors
    /// See [`EarlyReceipt::on_disk`].
    pub async fn flushed(&mut self) -> Result<(), MeterError> {
        if let Some(flush) = &mut self.flush {
            flush.flushed().await?;
            self.flush = None;
        }
        Ok(())
    }
}

impl From<Receipt> for EarlyReceipt {
    /// The receipt of a charge that is on disk.
    fn from(receipt: Receipt) -> Self {
        Self { receipt, flush: None }
    }
}

impl fmt::Debug for EarlyReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_on_disk = self.is_on_disk();
        f.debug_struct("EarlyReceipt").field("receipt", &self.receipt).field("is_on_disk", &is_on_disk).finish()
    }
}
