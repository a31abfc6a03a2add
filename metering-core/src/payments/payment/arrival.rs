//! Payments that arrived, credited or unclaimed.

use crate::chains::chain::Block;
use crate::chains::transaction::TxRef;
use crate::clock::Timestamp;
use crate::payments::payment::{Payment, PaymentFault, PaymentTarget};

/// A payment to a recipient, or a transaction that looks like one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The transaction.
    pub tx: TxRef,
    /// Its recipient and token.
    pub target: PaymentTarget,
    /// Its block.
    pub block: Block,
    /// The payment, or why the amount is unclear: two transfers in one transaction, for example.
    pub payment: Result<Payment, PaymentFault>,
}

/// A payment that the watcher left uncredited, because nobody claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclaimedPayment {
    /// The payment.
    pub arrival: Arrival,
    /// When the watcher left it.
    pub seen_at: Timestamp,
}
