//! The part of the storage contract for automatic top-ups.

use crate::payments::auto_top_up::{AutoTopUp, SavedCard, TopUpRule, TopUpStop};
use crate::payments::processor::ProcessorRef;

/// A change by the owner of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoTopUpChange {
    /// Saves a card in place of another, or removes it. Without a card nothing is topped up automatically.
    Card(Option<SavedCard>),
    /// Turns automatic top-ups on, or off.
    Rule(Option<TopUpRule>),
}

/// The outcome of [`PaymentStore::set_auto_top_up`](crate::PaymentStore::set_auto_top_up).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoTopUpSet {
    /// The settings now.
    Set(Box<AutoTopUp>),
    /// The account has no saved card.
    NoCard,
    /// No account has that id, or it is revoked.
    NoSuchAccount,
}

/// The end of a charge of a saved card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopUpEnd {
    /// It was paid with this payment.
    Paid(ProcessorRef),
    /// It was not paid: no more charges are made until the owner of the account turns them on again.
    Failed(TopUpStop),
    /// It was never made. Another charge may be.
    NeverMade,
}
