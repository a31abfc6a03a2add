//! The storage contract for payments that processors took.

use crate::access::account::Account;
use crate::chains::address::Address;
use crate::chains::units::TokenUnits;
use crate::clock::Timestamp;
use crate::payments::processor::{ProcessorRef, ProcessorReversal};

/// A reversal of a processor's payment, or its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReversalChange {
    /// The reversal: a refund, or a dispute.
    pub reversal: ProcessorRef,
    /// The payment.
    pub payment: ProcessorRef,
    /// The amount that it takes back, in the currency's smallest unit; `None` for all, or for the recorded amount.
    pub amount: Option<TokenUnits>,
    /// Why, for the ledger.
    pub reason: String,
    /// Whether it has ended, and takes nothing back. It may have ended before it was recorded.
    pub restored: bool,
    /// Whether a reversal that ended takes its amount back again.
    pub again: bool,
    /// The time of the change.
    pub now: Timestamp,
}

/// A reversal that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedReversal {
    /// The account of the payment afterwards.
    pub account: Account,
    /// The reversal.
    pub reversal: ProcessorReversal,
    /// The amount of the payment that its reversals take back together.
    pub amount: TokenUnits,
    /// The payment's currency ([`Currency::token`](crate::money::Currency::token)).
    pub currency: Address,
}

/// The outcome of [`PaymentStore::reverse_processor_payment`](crate::PaymentStore::reverse_processor_payment).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessorReversed {
    /// It was recorded.
    Recorded(Box<RecordedReversal>),
    /// It was recorded before, and nothing changed.
    Repeated(Box<RecordedReversal>),
    /// No such payment was recorded.
    NoSuchPayment,
    /// The id was recorded for another payment or amount.
    OtherTerms(Box<ProcessorReversal>),
    /// It is of nothing, or of more than the paid amount, which is returned.
    TooMuch(TokenUnits),
    /// The balance, a total or the entry would be out of range.
    OutOfRange,
}
