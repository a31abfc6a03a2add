//! The part of the storage contract for quotes that are claimed with a payment.

use crate::access::account::Account;
use crate::clock::Timestamp;
use crate::payments::payment::{Payment, SoldPlan};
use crate::payments::quote::NonceHash;
use crate::payments::value::PaymentValue;
use crate::store::NewAccount;

/// A quote and the payment that pays it.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The nonce of the quote.
    pub nonce: NonceHash,
    /// The payment, already checked.
    pub payment: Payment,
    /// The account to create, with its key, payer and first entries.
    pub account: NewAccount,
    /// The quote's plan as it is sold; `None` when it no longer exists.
    pub sold: Option<SoldPlan>,
    /// The current value of the payment, if the operator has set a currency.
    pub value: Option<PaymentValue>,
    /// Whether the key is delivered now.
    pub delivery: KeyDelivery,
    /// The time of the claim.
    pub now: Timestamp,
}

/// When a quote's owner gets the account's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyDelivery {
    /// Now: the claim's response contains it.
    Now,
    /// Later: the watcher makes the claim, and the quote's owner will claim a key later.
    Later,
}

/// The outcome of [`PaymentStore::claim_quote`](crate::PaymentStore::claim_quote).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// The account, with the claim's key.
    Account(Account),
    /// No quote has that nonce.
    NoSuchQuote,
    /// The quote was already claimed.
    AlreadyClaimed,
    /// The transaction was used before.
    TxUsed,
    /// The payer now has an account.
    PayerTaken,
    /// The entries add up to more than a balance can hold.
    OutOfRange,
}
