//! The model's records of payments, quotes, authorizations and refills.

use metering_core::access::KeyHash;
use metering_core::chains::TxRef;
use metering_core::clock::{Day, Timestamp};
use metering_core::money::Refill;
use metering_core::offers::{GasPlace, SettlementFailure, Submission};
use metering_core::payments::{Payment, PaymentUse, PaymentValue, Quote, SettlementStep, SoldPlan};
use metering_core::store::NewAuthorization;

/// A quote and its outcome.
#[derive(Debug)]
pub(super) struct OpenedQuote {
    /// The quote, in its state when it was opened.
    pub(super) quote: Quote,
    pub(super) claimer: Option<Claimer>,
}

/// An account created by a quote.
#[derive(Debug)]
pub(super) struct Claimer {
    pub(super) owner: usize,
    pub(super) tx: TxRef,
    /// The key it was created with, if that key was given to no one.
    pub(super) placeholder: Option<KeyHash>,
}

/// A payment that was used.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) payment: Payment,
    /// The number of the account it was used for.
    pub(super) owner: usize,
    pub(super) used_as: PaymentUse,
    pub(super) plan_id: Option<String>,
    pub(super) sold: Option<SoldPlan>,
    pub(super) value: Option<PaymentValue>,
    pub(super) at: Timestamp,
    /// Every settlement step, and when it was taken.
    pub(super) steps: Vec<(SettlementStep, Timestamp)>,
    /// Whether it linked its payer to the account.
    pub(super) links: bool,
}

/// An authorization that was accepted.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) new: NewAuthorization,
    pub(super) claimed_until: Timestamp,
    pub(super) failed: Option<(SettlementFailure, Timestamp)>,
    pub(super) tx: Option<TxRef>,
    pub(super) gas: Option<GasPlace>,
    pub(super) submissions: Vec<Submission>,
}

/// A place that was assigned, and whether it is free again.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) chain_id: u64,
    pub(super) place: GasPlace,
    pub(super) free: bool,
}

/// The rule, and whose turn it is.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) refill: Refill,
    /// The newest period in which accounts were refilled, and their number.
    pub(super) turns: Option<(Day, usize)>,
}
