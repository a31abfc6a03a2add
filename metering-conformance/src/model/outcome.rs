//! The outcome that the model expects for a posting. A receipt of core cannot be made outside of it, so its fields are
//! compared.

use std::sync::Arc;

use metering_core::access::{AccountId, KeyNumber};
use metering_core::charging::{Attempt, Held, HoldUpdated, Outcome, RateStatus, Volume};
use metering_core::clock::Day;
use metering_core::money::Credits;
use metering_core::prices::PriceNumber;
use metering_core::usage::UsageLine;
use metering_core::{Decision, Receipt, Refusal};

/// The outcome of a posting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Decided(Result<Charged, Refusal>),
    Refunded(Option<Credits>),
    Hold(Option<HoldUpdated>),
}

/// An accepted charge.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Charged {
    pub(crate) account: AccountId,
    pub(crate) key: KeyNumber,
    pub(crate) charged: Credits,
    pub(crate) balance: Credits,
    pub(crate) line: UsageLine,
    pub(crate) day: Day,
    pub(crate) request_path: Arc<str>,
    pub(crate) rate: RateStatus,
    pub(crate) repeated: bool,
    pub(crate) delivery: Option<Attempt>,
    pub(crate) has_slot: bool,
    pub(crate) hold: Option<Held>,
    pub(crate) price_version: Option<PriceNumber>,
    pub(crate) volume: Option<Volume>,
}

impl Expected {
    /// The outcome of a store, to compare it with. The model has no settlements and no postings that fail.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Decided(Decision::Accepted(receipt)) => Self::Decided(Ok(Charged::of(receipt))),
            Outcome::Decided(Decision::Refused(refusal)) => Self::Decided(Err(refusal.clone())),
            Outcome::Refunded(balance) => Self::Refunded(*balance),
            Outcome::Hold(updated) => Self::Hold(updated.clone()),
            Outcome::Settled | Outcome::Failed(_) => panic!("the model has no such outcome: {outcome:?}"),
        }
    }
}

impl Charged {
    fn of(receipt: &Receipt) -> Self {
        Self {
            account: receipt.account.clone(),
            key: receipt.key,
            charged: receipt.charged,
            balance: receipt.balance,
            line: receipt.line.clone(),
            day: receipt.day,
            request_path: Arc::clone(&receipt.request_path),
            rate: receipt.rate,
            repeated: receipt.repeated,
            delivery: receipt.delivery.clone(),
            has_slot: receipt.slot.is_some(),
            hold: receipt.hold,
            price_version: receipt.price_version,
            volume: receipt.volume.clone(),
        }
    }
}
