//! Errors for callers whose requests child accounts do not allow.

use crate::money::credits::Credits;
use crate::wire::ErrorCode;

/// Why a request about child accounts was refused. Nothing was moved or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChildAccountError {
    /// The service has no child accounts ([`ServiceConfig`](crate::ServiceConfig)`::max_child_accounts`).
    #[error("This service does not offer child accounts.")]
    NotOffered,
    /// The account has no such child, or it is closed.
    #[error("The account has no such child account, or it is closed. Nothing was moved or changed.")]
    NoSuchChild,
    /// The account is a child itself.
    #[error("This account is a child account itself, and has none of its own.")]
    IsChild,
    /// The account has reached its limit of child accounts.
    #[error("The account has reached its limit of child accounts. Close one first.")]
    TooMany,
    /// The balance of the giving account does not cover the credits.
    #[error("Nothing was moved: the account that would give the credits has {0} left.")]
    NotEnough(Credits),
    /// The parent would take back more credits than it gave.
    #[error(
        "Nothing was moved: you can take back at most {0} credits, which is what you gave to this account, less what you took \
         back. Its other credits are its own."
    )]
    NotGiven(Credits),
    /// A balance could not hold the credits.
    #[error("Nothing was moved: the amount is too large for a balance.")]
    OutOfRange,
    /// Requests of the child are in progress.
    #[error("The account was not closed: its requests in progress hold {0} credits. Try again when they are done.")]
    InProgress(Credits),
    /// A payment of the child is in progress.
    #[error("The account was not closed: a payment for it is on its way. Try again when it is credited.")]
    Paying,
    /// The child's balance is below zero.
    #[error("The account was not closed: its balance is {0}. Give it credits first.")]
    Owes(Credits),
    /// The child has credits that its parent did not give.
    #[error(
        "The account was not closed: {0} of its credits did not come from you, and stay its own. Close it when they are spent, \
         or ask the operator."
    )]
    HasOwn(Credits),
}

impl ChildAccountError {
    /// The code that clients get.
    pub(super) const fn code(self) -> ErrorCode {
        match self {
            Self::NotOffered | Self::NoSuchChild => ErrorCode::NotFound,
            Self::IsChild
            | Self::TooMany
            | Self::NotEnough(_)
            | Self::NotGiven(_)
            | Self::OutOfRange
            | Self::InProgress(_)
            | Self::Paying
            | Self::Owes(_)
            | Self::HasOwn(_) => ErrorCode::Conflict,
        }
    }
}
