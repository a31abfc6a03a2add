//! Irregularities of an account at its source. All are listed; none stops the import silently.

use serde::Serialize;

/// A finding that an operator should check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Oddity {
    /// What it is about: an id or a row of the source.
    pub subject: String,
    /// What it is.
    pub kind: OddityKind,
    /// What was found, and how the import handles it.
    pub detail: String,
}

/// A kind of oddity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OddityKind {
    /// The signup session of an account is missing.
    MissingSession,
    /// The balance is below zero.
    NegativeBalance,
    /// Another account has the same email address.
    DuplicateEmail,
    /// Another account has the same wallet.
    DuplicatePayer,
    /// Another account has the same id.
    DuplicateId,
    /// An id that is not one here.
    InvalidId,
    /// A transaction was credited more than once.
    DuplicateTransaction,
    /// A type of transaction that is not known.
    UnknownType,
    /// An agent name that is not allowed here.
    InvalidName,
    /// An email address that is not one.
    InvalidEmail,
    /// A wallet address that is not one.
    InvalidPayer,
    /// A transaction hash or chain that is not one.
    InvalidTransaction,
    /// A time that cannot be read.
    InvalidTime,
    /// A rate limit that cannot be read.
    InvalidLimit,
    /// An amount that cannot be read.
    InvalidAmount,
    /// A transaction of an account that does not exist.
    OrphanTransaction,
    /// Balance and transactions differ by more than rounding.
    BalanceDiffers,
    /// The total of purchases differs from the purchases.
    PurchasedDiffers,
    /// The total of usage differs from the usage.
    UsedDiffers,
    /// Credits are held by requests in flight.
    Held,
    /// The account cannot be imported.
    Refused,
    /// The account was imported before, and has changed since.
    ChangedSince,
    /// An open quote that cannot be imported.
    QuoteRefused,
    /// A database whose newest changes may be missing.
    WithoutWal,
}

impl Oddity {
    /// An oddity.
    pub fn new(subject: impl Into<String>, kind: OddityKind, detail: impl Into<String>) -> Self {
        Self { subject: subject.into(), kind, detail: detail.into() }
    }
}

impl OddityKind {
    /// Its name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingSession => "missing_session",
            Self::NegativeBalance => "negative_balance",
            Self::DuplicateEmail => "duplicate_email",
            Self::DuplicatePayer => "duplicate_payer",
            Self::DuplicateId => "duplicate_id",
            Self::InvalidId => "invalid_id",
            Self::DuplicateTransaction => "duplicate_transaction",
            Self::UnknownType => "unknown_type",
            Self::InvalidName => "invalid_name",
            Self::InvalidEmail => "invalid_email",
            Self::InvalidPayer => "invalid_payer",
            Self::InvalidTransaction => "invalid_transaction",
            Self::InvalidTime => "invalid_time",
            Self::InvalidLimit => "invalid_limit",
            Self::InvalidAmount => "invalid_amount",
            Self::OrphanTransaction => "orphan_transaction",
            Self::BalanceDiffers => "balance_differs",
            Self::PurchasedDiffers => "purchased_differs",
            Self::UsedDiffers => "used_differs",
            Self::Held => "held",
            Self::Refused => "refused",
            Self::ChangedSince => "changed_since",
            Self::QuoteRefused => "quote_refused",
            Self::WithoutWal => "without_wal",
        }
    }
}
