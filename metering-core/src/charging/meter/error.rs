use std::sync::Arc;

use crate::store::StoreError;

/// Why a charge was not decided. Nothing was charged, unless [`MeterError::outcome_is_unknown`] returns true.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// Too many charges are waiting.
    #[error("too many requests are waiting to be charged")]
    Overloaded,
    /// The meter was drained.
    #[error("the service is shutting down")]
    Closed,
    /// No hold has this id; it may have been deleted after its retention.
    #[error("there is no such hold")]
    NoSuchHold,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Arc<StoreError>),
}
