//! What can go wrong with a transaction, and what the storage contract calls it.

use metering_core::StoreError;
use tokio_postgres::error::SqlState;

/// Why a transaction did not end as it should.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database, or the way to it.
    Database(tokio_postgres::Error),
    /// No connection could be had.
    Pool(deadpool_postgres::PoolError),
    /// The contract's own error, which trying again does not mend.
    Store(StoreError),
}

/// `Result` within a transaction.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Whether the same transaction may succeed when it is tried again: it was not committed, through no fault of its
    /// own.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => match error.code() {
                Some(code) => is_transient(code),
                // What did not come from the server came from the way to it.
                None => error.is_closed() || is_io(error),
            },
            Self::Pool(deadpool_postgres::PoolError::Backend(error)) => match error.code() {
                Some(code) => is_transient(code),
                None => true,
            },
            Self::Pool(_) => true,
            Self::Store(_) => false,
        }
    }

    /// Whether the server itself said that the transaction was not committed.
    pub(crate) fn is_the_servers(&self) -> bool {
        // A server that shuts down says so on a connection whose commit may have happened.
        matches!(self, Self::Database(error) if error.code().is_some_and(|code| !is_shutdown(code)))
    }
}

/// Serialization failures and deadlocks (class 40), lost connections (08), servers that come or go (57P), read-only
/// servers, which a failover leaves for a moment (25006), and too many clients (53300).
fn is_transient(code: &SqlState) -> bool {
    let text = code.code();
    text.starts_with("40")
        || text.starts_with("08")
        || is_shutdown(code)
        || *code == SqlState::READ_ONLY_SQL_TRANSACTION
        || *code == SqlState::TOO_MANY_CONNECTIONS
        || *code == SqlState::LOCK_NOT_AVAILABLE
}

fn is_shutdown(code: &SqlState) -> bool {
    code.code().starts_with("57P") || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if inner.is::<std::io::Error>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<deadpool_postgres::PoolError> for Failure {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        Self::Pool(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Database(error) => Self::Unavailable(Box::new(error)),
            Failure::Pool(error) => Self::Unavailable(Box::new(error)),
            Failure::Store(error) => error,
        }
    }
}

/// An error for a stored value that its own type refuses.
pub(crate) fn corrupt(what: impl std::fmt::Display) -> Failure {
    Failure::Store(StoreError::Corrupt(what.to_string()))
}
