//! Failures of a transaction: which are transient, which leave the outcome unknown, and which error of the storage
//! contract each becomes.

use std::iter;
use std::time::Duration;

use deadpool_postgres::{PoolError, TimeoutType};
use metering_core::StoreError;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::connection::tls::{Insecure, refusal};

/// Advice about a pooler that spreads transactions over several server connections.
pub(crate) const SHARED: &str = "a connection pooler in transaction mode, such as PgBouncer, is in front of the \
     database; add statement_cache=off to the options of the database URL \
     (postgres://USER@HOST/DATABASE?statement_cache=off), or set pool_mode = session";

/// Why a transaction failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database or the connection to it failed.
    Database(tokio_postgres::Error),
    /// The pool provided no connection.
    Pool(PoolError),
    /// The database did not respond within this time.
    Silent(Duration),
    /// No host could be reached when the store was opened. States what was tried, and what to do.
    Unreachable(String),
    /// An error of the storage contract; a retry does not help.
    Store(StoreError),
}

/// `Result` within a transaction.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// Whether a retry may succeed: the transaction was not committed, and the cause is not in the transaction itself.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) | Self::Pool(PoolError::Backend(error)) => !is_lasting(error),
            Self::Pool(_) | Self::Silent(_) => true,
            Self::Store(_) | Self::Unreachable(_) => false,
        }
    }

    /// Whether some value caused this, so that other postings of the same batch may succeed without it: corrupt rows,
    /// and the database's data exceptions (SQLSTATE classes 21 and 22), violated constraints (23) and exceeded limits
    /// (54).
    pub(crate) fn is_data_error(&self) -> bool {
        match self {
            Self::Store(StoreError::Corrupt(_)) => true,
            Self::Database(error) => {
                let class =
                    |code: &SqlState| ["21", "22", "23", "54"].iter().any(|class| code.code().starts_with(class));
                error.code().is_some_and(class)
            }
            _ => false,
        }
    }

    /// Whether the server itself reported that the transaction was not committed.
    pub(crate) fn is_server_response(&self) -> bool {
        matches!(self, Self::Database(error) if error.as_db_error().is_some_and(is_definite))
    }

    /// Whether existing connections can no longer be trusted: their host does not respond, or is no longer the primary.
    pub(crate) fn is_host_failure(&self) -> bool {
        match self {
            Self::Silent(_) => true,
            Self::Database(error) => error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION),
            _ => false,
        }
    }

    /// Whether the connection was lost, and perhaps the server with any data that only it had.
    pub(crate) fn is_connection_loss(&self) -> bool {
        match self {
            Self::Database(error) => error.as_db_error().is_none_or(ends_connection) || self.is_host_failure(),
            _ => self.is_host_failure(),
        }
    }
}

/// Whether the error is permanent, so that a retry does not help.
pub(crate) fn is_lasting(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => !is_transient(code),
        // An error without a code comes from the connection, not from the server.
        None => !(error.is_closed() || is_io(error)) || refusal(error).is_some(),
    }
}

/// Serialization failures and deadlocks (class 40), lost connections (08), servers that start or stop (57P), idle
/// timeouts (25P03), read-only servers, which occur briefly during a failover (25006), too many clients (53300), and
/// lock timeouts (55P03).
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

/// Errors of servers that do not know whether they committed: `transaction_resolution_unknown` and
/// `statement_completion_unknown`.
fn is_ambiguous(code: &SqlState) -> bool {
    *code == SqlState::TRANSACTION_RESOLUTION_UNKNOWN || *code == SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}

/// Whether an error in response to a COMMIT means that nothing was committed. A server that shuts down also reports
/// that on connections whose commit may have happened, and a pooler that lost its server sends its own error (class
/// 08). Only an error that leaves the connection usable comes from the transaction itself.
fn is_definite(error: &DbError) -> bool {
    !ends_connection(error) && !is_ambiguous(error.code())
}

/// Whether the connection ends after this error.
fn ends_connection(error: &DbError) -> bool {
    // Poolers may send the severity only in its localizable form, in English.
    let is_fatal = match error.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => matches!(error.severity(), "FATAL" | "PANIC"),
    };
    is_fatal || is_connection_lost(error.code())
}

/// Codes that a server or a pooler sends when it shuts down or has lost its upstream connection.
fn is_connection_lost(code: &SqlState) -> bool {
    is_shutdown(code) || code.code().starts_with("08")
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

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
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
            Failure::Database(error) | Failure::Pool(PoolError::Backend(error)) => match Insecure::with_advice(error) {
                Ok(insecure) => Self::Unavailable(Box::new(insecure)),
                Err(error) if is_prepared_statement_error(&error) => {
                    Self::Unavailable(format!("{}; {SHARED}", describe(&error)).into())
                }
                Err(error) => Self::Unavailable(describe(&error).into()),
            },
            Failure::Pool(PoolError::Timeout(TimeoutType::Create)) => {
                Self::Unavailable("the database does not respond".into())
            }
            Failure::Pool(PoolError::Timeout(TimeoutType::Wait)) => {
                Self::Unavailable("all connections to the database are in use (raise pool_size)".into())
            }
            Failure::Pool(error) => Self::Unavailable(Box::new(error)),
            Failure::Silent(wait) => {
                Self::Unavailable(format!("the database did not respond within {} s", wait.as_secs()).into())
            }
            Failure::Unreachable(what) => Self::Unavailable(what.into()),
            Failure::Store(error) => error,
        }
    }
}

/// The error's text: the database's own message if there is one, since the driver only says "db error". Leaves out the
/// database's details, which may contain data.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(db_error) = error.as_db_error() {
        return format!("{}: {} (SQLSTATE {})", db_error.severity(), db_error.message(), db_error.code().code());
    }
    let causes = iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Like [`describe`], but without the driver's text if there is a more specific one.
pub(crate) fn reason(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (None, Some(cause)) => {
            let causes = iter::successors(cause.source(), |cause| cause.source());
            causes.fold(cause.to_string(), |text, cause| format!("{text}: {cause}"))
        }
        _ => describe(error),
    }
}

/// A statement that this connection prepared is missing, or one with its name already exists: the server connection is
/// another client's.
fn is_prepared_statement_error(error: &tokio_postgres::Error) -> bool {
    let codes = [SqlState::DUPLICATE_PSTATEMENT, SqlState::INVALID_SQL_STATEMENT_NAME];
    error.code().is_some_and(|code| codes.contains(code))
}

/// The error for stored data that is invalid.
pub(crate) fn corrupt(what: impl std::fmt::Display) -> Failure {
    Failure::Store(StoreError::Corrupt(what.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstates_are_classified_correctly() {
        // code, is transient, leaves the outcome of a COMMIT unknown
        let table = [
            ("40001", true, false),
            ("40P01", true, false),
            ("40003", true, true),
            ("08007", true, true),
            // Sent by a pooler that lost its connection to the server.
            ("08P01", true, true),
            ("08006", true, true),
            ("57P01", true, true),
            ("25P03", true, true),
            ("25006", true, false),
            ("55P03", true, false),
            // A cancelled statement was not committed. (Cancelling a wait for a standby is not an error.)
            ("57014", false, false),
            ("23505", false, false),
            ("28P01", false, false),
        ];
        for (code, transient, open) in table {
            let state = SqlState::from_code(code);
            assert_eq!(
                (is_transient(&state), is_connection_lost(&state) || is_ambiguous(&state)),
                (transient, open),
                "{code}"
            );
        }
    }
}
