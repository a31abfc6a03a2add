//! Irregularities of an account at its source. All are listed; none stops the import silently.

use metering_core::named_enum;
use serde::Serialize;

/// A finding that an operator should check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportFinding {
    /// Its subject: an id or a row of the source.
    pub subject: String,
    /// What it is.
    pub kind: ImportFindingKind,
    /// The problem, and how the import handles it.
    pub detail: String,
}

named_enum! {
    /// A kind of oddity.
    pub enum ImportFindingKind {
        /// The signup session of an account is missing.
        MissingSession = "missing_session",
        /// The balance is below zero.
        NegativeBalance = "negative_balance",
        /// Another account has the same email address.
        DuplicateEmail = "duplicate_email",
        /// Another account has the same wallet.
        DuplicatePayer = "duplicate_payer",
        /// Another account has the same id.
        DuplicateId = "duplicate_id",
        /// An id that is not valid here.
        InvalidId = "invalid_id",
        /// A transaction was credited more than once.
        DuplicateTransaction = "duplicate_transaction",
        /// An unknown type of transaction.
        UnknownType = "unknown_type",
        /// An agent name that is not allowed here.
        InvalidName = "invalid_name",
        /// An invalid email address.
        InvalidEmail = "invalid_email",
        /// An invalid wallet address.
        InvalidPayer = "invalid_payer",
        /// An invalid transaction hash or chain.
        InvalidTransaction = "invalid_transaction",
        /// A time that cannot be read.
        InvalidTime = "invalid_time",
        /// A rate limit that cannot be read.
        InvalidLimit = "invalid_limit",
        /// An amount that cannot be read.
        InvalidAmount = "invalid_amount",
        /// A transaction of an account that does not exist.
        OrphanTransaction = "orphan_transaction",
        /// Balance and transactions differ by more than rounding.
        BalanceDiffers = "balance_differs",
        /// The total of purchases differs from the purchases.
        PurchasedDiffers = "purchased_differs",
        /// The total of usage differs from the usage.
        UsedDiffers = "used_differs",
        /// Credits are held by requests in flight.
        Held = "held",
        /// The account cannot be imported.
        Refused = "refused",
        /// The account was imported before, and has changed since.
        ChangedSince = "changed_since",
        /// An open quote that cannot be imported.
        QuoteRefused = "quote_refused",
        /// A database whose newest changes may be missing.
        WithoutWal = "without_wal",
    }
}

impl ImportFinding {
    /// An oddity.
    pub fn new(subject: impl Into<String>, kind: ImportFindingKind, detail: impl Into<String>) -> Self {
        Self { subject: subject.into(), kind, detail: detail.into() }
    }
}
