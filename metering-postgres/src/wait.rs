//! How long is waited for the database. None of it is for ever: one that says nothing is as good as gone.

use std::time::Duration;

use crate::error::{Failure, Result};
use crate::session::{Client, Pool};

/// How long to wait for a connection of the pool.
pub(crate) const CONNECTION_WAIT: Duration = Duration::from_secs(5);

/// How long charges, facts and short questions wait for all their answers: longer than for a lock (`lock_timeout`), so
/// that the database, when there is one, speaks first. Shorter than [`STATEMENT_TIMEOUT`]: a `COMMIT` that waits for a
/// standby is then given up here, as one without answer, before the database stops waiting and calls it committed.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_secs(15);

/// When the database ends a statement.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long reports, verification and sweeps wait: the database ends them first.
pub(crate) const REPORT_WAIT: Duration = Duration::from_secs(70);

const _: () = assert!(ANSWER_WAIT.as_secs() < STATEMENT_TIMEOUT.as_secs());
const _: () = assert!(STATEMENT_TIMEOUT.as_secs() < REPORT_WAIT.as_secs());

/// Waits for work with the database, but no longer than that.
pub(crate) async fn within<T>(wait: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(wait, work).await.unwrap_or(Err(Failure::Silent(wait)))
}

/// Closes a connection that is of no use any more, and all idle ones: what happened to it has happened to them.
pub(crate) fn close(pool: &Pool, client: Client) {
    client.close();
    pool.close_idle();
}
