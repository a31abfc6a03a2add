//! Errors of administration.

use std::fmt::Display;

use metering_core::Error;
use metering_core::access::AccountId;
use metering_core::chains::ChainError;
use metering_core::payments::PlanKey;
use metering_core::store::StoreError;

/// Why a use case of administration failed. Unless [`AdminError::Store`] says otherwise, nothing changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// There is no such account.
    #[error("no account {0}")]
    NoSuchAccount(AccountId),
    /// There is no such plan.
    #[error("no plan {0}")]
    NoSuchPlan(PlanKey),
    /// Something else does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The current state prevents it, such as a revoked account.
    #[error("{0}")]
    Conflict(String),
    /// A balance or a total could not hold the credits.
    #[error("{0}")]
    OutOfRange(String),
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// Fields of the request are not valid.
    #[error(transparent)]
    Request(#[from] Error),
    /// The caller may not do this in this way.
    #[error("{0}")]
    Forbidden(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A chain could not be read.
    #[error("could not read chain {chain}: {error}")]
    Chain {
        /// The name of the chain.
        chain: String,
        /// What happened.
        error: ChainError,
    },
}

/// The error for a field that is not valid.
pub(crate) fn wrong(field: &str, problem: impl Display) -> AdminError {
    Error::field(field, problem).into()
}
