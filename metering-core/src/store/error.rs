//! Failures of a backend, and the guaranteed state after each.

/// A failure of a backend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operation is not possible now, and nothing happened. A retry may work.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The commit itself failed, so the operation may or may not have happened. The store can still be used.
    #[error("the commit failed, and may or may not have happened: {0}")]
    OutcomeUnknown(String),
    /// A flush to disk failed during the commit, or the file is gone: the operation may or may not have happened. The
    /// process must stop and open the store again, because retrying a failed fsync can report success for lost data.
    #[error("the store failed while writing to disk and must be opened again: {0}")]
    Broken(String),
    /// An earlier failure closed the store; nothing happened. The process must stop and open it again.
    #[error("the store can no longer be used and must be opened again: {0}")]
    Closed(String),
    /// The cursor of a list was not issued by this store. Nothing happened.
    #[error("the cursor was not issued by this store")]
    UnknownCursor,
    /// A sum is too large to be represented. Nothing happened.
    #[error("{0}")]
    OutOfRange(String),
    /// The data is corrupt, or is not a store.
    #[error("the store cannot be used: {0}")]
    Corrupt(String),
    /// The data was written by a newer version of this software.
    #[error("the data has schema version {found}, but this program supports up to {supported}; use a newer program")]
    NewerVersion {
        /// The data's version.
        found: i64,
        /// The newest version that this program supports.
        supported: i64,
    },
}

impl StoreError {
    /// Whether the operation may have happened despite the error. After any other error nothing happened.
    #[must_use]
    pub const fn outcome_is_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_) | Self::Broken(_))
    }

    /// Whether the process must stop and open the store again.
    #[must_use]
    pub const fn must_reopen(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Closed(_))
    }
}
