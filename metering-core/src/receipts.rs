//! Receipts of requests: signed statements of a request's cost, which a client keeps and can check without trusting the
//! operator. The signer is a trait, so this crate needs no key and no signature algorithm.

use std::collections::HashSet;
use std::fmt;

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::charging::charge::Receipt;
use crate::charging::hold::{Hold, HoldId};
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::named_enum::named_enum;
use crate::prices::number::PriceNumber;
use crate::store::StoreError;
use crate::usage::UsageLine;

named_enum! {
    /// Which change of a balance a receipt states.
    pub enum ReceiptKind {
        /// The request was charged.
        Charge = "charge",
        /// The request's cost was captured from a hold.
        Capture = "capture",
        /// The charge of the request was refunded: it cost nothing.
        Refund = "refund",
    }
}

/// The contents of a receipt. It is on disk before it is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The account whose balance changed.
    pub account: AccountId,
    /// The key that the request came with.
    pub key: KeyNumber,
    /// The request.
    pub request: HoldId,
    /// What happened.
    pub kind: ReceiptKind,
    /// The usage row that it is booked on.
    pub line: UsageLine,
    /// The version of the price list that the price is from; `None` if that is not known.
    pub price_version: Option<PriceNumber>,
    /// The amount, above zero. A refund adds it to the balance; the others subtract it.
    pub amount: Credits,
    /// The balance after it; `None` for a request that is looked up later, when it is no longer known.
    pub balance: Option<Credits>,
    /// When it was committed.
    pub at: Timestamp,
}

impl Statement {
    /// The charge of a request; `None` if nothing was charged for it, or by an earlier attempt.
    pub(crate) fn of_charge(receipt: &Receipt, request: HoldId) -> Option<Self> {
        let is_charged = !receipt.repeated && receipt.charged.is_positive();
        is_charged.then(|| Self {
            account: receipt.account.clone(),
            key: receipt.key,
            request,
            kind: ReceiptKind::Charge,
            line: receipt.line.clone(),
            price_version: receipt.price_version,
            amount: receipt.charged,
            balance: Some(receipt.balance),
            at: receipt.rate.at,
        })
    }

    /// The amount captured from a hold; `None` if that is zero, or the hold is open.
    pub(crate) fn of_capture(
        hold: &Hold,
        price_version: Option<PriceNumber>,
        balance: Option<Credits>,
    ) -> Option<Self> {
        let settled = hold.settled.filter(|settled| settled.captured.is_positive())?;
        Some(Self {
            account: hold.account.clone(),
            key: hold.key,
            request: hold.id,
            kind: ReceiptKind::Capture,
            line: hold.line.clone(),
            price_version,
            amount: settled.captured,
            balance,
            at: settled.at,
        })
    }
}

/// Signs receipts.
///
/// ```
/// use metering_core::receipts::{ReceiptError, ReceiptSigner, Statement};
///
/// /// For tests: says what was charged, and signs nothing.
/// #[derive(Debug)]
/// struct Unsigned;
///
/// #[async_trait::async_trait]
/// impl ReceiptSigner for Unsigned {
///     async fn sign(&self, statement: Statement) -> Result<String, ReceiptError> {
///         Ok(format!("{}-{}", statement.kind, statement.amount))
///     }
/// }
/// ```
#[async_trait]
pub trait ReceiptSigner: Send + Sync + fmt::Debug {
    /// Signs a receipt, and returns the value of the header [`RECEIPT_HEADER`](crate::wire::RECEIPT_HEADER). The response
    /// waits for it, so it must not take long.
    ///
    /// # Errors
    /// When it cannot be signed now. The response is then sent without a receipt.
    async fn sign(&self, statement: Statement) -> Result<String, ReceiptError>;
}

/// Why a receipt was not signed. The charge that it would have stated is on disk all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// The statement cannot be written as a receipt.
    #[error("the statement cannot be signed: {0}")]
    Invalid(String),
    /// The store that has the id of the key failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Which requests get a receipt without requesting one, besides those to routes whose catalogue requires it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiptScope {
    accounts: HashSet<AccountId>,
}

impl ReceiptScope {
    /// The requests of these accounts.
    #[must_use]
    pub fn of_accounts(accounts: impl IntoIterator<Item = AccountId>) -> Self {
        Self { accounts: accounts.into_iter().collect() }
    }

    /// Whether the requests of this account are among them.
    #[must_use]
    pub fn has(&self, account: &AccountId) -> bool {
        self.accounts.contains(account)
    }
}
