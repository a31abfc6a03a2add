//! The part of the meter for requests whose cost is known only after they were served.

use std::sync::Arc;

use tracing::{Instrument, info_span};

use super::guard::HoldGuard;
use super::{Meter, MeterError};
use crate::charging::charge::{Charge, Decision, Receipt};
use crate::charging::hold::{HoldTerms, HoldUpdate, HoldUpdated};
use crate::charging::posting::{Outcome, Posting};
use crate::charging::refusal::Refusal;
use crate::trace;

/// The decision on a hold.
#[derive(Debug)]
pub enum HoldDecision {
    /// It is held; serve the request, and capture its cost.
    Held(HoldGuard),
    /// Nothing is held; do not serve the request.
    Refused(Refusal),
}

impl MeterError {
    /// Whether the charge may have been recorded anyway.
    #[must_use]
    pub fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::Store(error) if error.outcome_is_unknown())
    }
}

impl Meter {
    /// Holds the price of a request whose cost is known only afterwards. When this returns, the decision is on disk.
    ///
    /// The guard captures the request's cost, and the rest returns to the balance. If the process ends first, another
    /// process with a meter on the store captures the fallback when the lease has ended.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use metering_core::charging::{HoldDecision, HoldTerms};
    /// use metering_core::{Charge, Credits, MemoryStore, Service, SystemRandomness};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// # let meter = service.meter();
    /// let most = Charge::new(&key, "0.5".parse()?, "POST", "/chat");
    /// let terms = HoldTerms::new(&SystemRandomness, Duration::from_secs(60), Credits::ZERO);
    /// let guard = match meter.hold(most, terms).await? {
    ///     HoldDecision::Held(guard) => guard,
    ///     HoldDecision::Refused(refusal) => return Err(format!("{refusal:?}").into()),
    /// };
    /// assert_eq!(guard.receipt().balance.to_string(), "1.5");
    /// // Serve the request, and then:
    /// let captured = guard.capture("0.02".parse()?).await?;
    /// assert_eq!(captured.balance.to_string(), "1.98");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the hold could not be decided.
    pub async fn hold(&self, charge: Charge, terms: HoldTerms) -> Result<HoldDecision, MeterError> {
        match self.charge(charge.with_hold(terms)).await? {
            Decision::Refused(refusal) => Ok(HoldDecision::Refused(refusal)),
            Decision::Accepted(receipt) => match self.guard(receipt) {
                Ok(guard) => Ok(HoldDecision::Held(guard)),
                Err(receipt) => unreachable!("the receipt of a hold has the held amount: {receipt:?}"),
            },
        }
    }

    /// Takes over the hold of a receipt: settles it with the guard, and renews its lease until then.
    ///
    /// # Errors
    /// The receipt, if it does not belong to a hold.
    #[expect(clippy::result_large_err, reason = "the receipt is handed back")]
    pub fn guard(&self, receipt: Receipt) -> Result<HoldGuard, Receipt> {
        HoldGuard::new(receipt, self.queue.clone(), Arc::clone(&self.open))
    }

    /// Settles a hold that has no guard in this process, or renews its lease. Waits if the queue is full, because the
    /// refund must be made.
    ///
    /// # Errors
    /// [`MeterError::NoSuchHold`], or when it could not be recorded.
    pub async fn update_hold(&self, update: HoldUpdate) -> Result<HoldUpdated, MeterError> {
        let span = info_span!(target: trace::TARGET, "settle_hold");
        match self.queue.record(Posting::Hold(update)).instrument(span).await? {
            Outcome::Hold(updated) => updated.ok_or(MeterError::NoSuchHold),
            other => unreachable!("a store returns a hold for an update, but the outcome was {other:?}"),
        }
    }
}
