//! Timeouts for the database. Nothing waits forever: a database that does not respond counts as down.

use std::time::Duration;

use crate::error::{Failure, Result};

/// How long to wait for a connection of the pool.
pub(crate) const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for all responses to charges, other writes and short queries. Longer than `lock_timeout`, so that a database
/// that is up reports a lock timeout first. Shorter than [`STATEMENT_TIMEOUT`]: a `COMMIT` that waits for a standby is
/// abandoned here, with an unknown outcome, before the database stops waiting and reports it as committed.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// When the database cancels a statement.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout for reports, verification and sweeps. Longer than [`STATEMENT_TIMEOUT`], so that the database cancels first.
pub(crate) const REPORT_TIMEOUT: Duration = Duration::from_secs(70);

const _: () = assert!(RESPONSE_TIMEOUT.as_secs() < STATEMENT_TIMEOUT.as_secs());
const _: () = assert!(STATEMENT_TIMEOUT.as_secs() < REPORT_TIMEOUT.as_secs());

/// Waits for database work, for at most `wait`.
pub(crate) async fn within<T>(wait: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(wait, work).await.unwrap_or(Err(Failure::Silent(wait)))
}
