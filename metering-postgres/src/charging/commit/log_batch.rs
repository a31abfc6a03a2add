//! Records the usage of a commit for the log, if one is open.
//!
//! The condition is evaluated in the last round trip, after the meters are locked, and
//! [`begin_log`](metering_core::store::LogStore::begin_log) locks the table of meters against that. So a commit either
//! ends before the log begins, and is part of the opening funds, or sees that the log is open. The row gets its id
//! under the locks too: those of an account are in the order of its commits.

use metering_core::Timestamp;
use metering_core::charging::Changes;
use metering_sql::log;

use crate::connection::session::{Client, GenericClient, Prepared};
use crate::connection::value::Value;
use crate::error::Result;

const NOTE: &str = "INSERT INTO log_batch (at, changes) SELECT $1::BIGINT, $2::BYTEA \
     WHERE EXISTS (SELECT 1 FROM log_open)";

/// The statement that notes usage.
pub(super) struct LogBatchWrite<'c> {
    statement: Option<Prepared<'c>>,
    at: i64,
    changes: Vec<u8>,
}

impl<'c> LogBatchWrite<'c> {
    /// Prepares it, if there is any usage.
    pub(super) async fn prepare(client: &'c Client, changes: &Changes<i64, i64>, now: Timestamp) -> Result<Self> {
        if changes.usage.is_empty() {
            return Ok(Self { statement: None, at: now.unix_millis(), changes: Vec::new() });
        }
        let statement = Some(client.prepare(NOTE).await?);
        Ok(Self { statement, at: now.unix_millis(), changes: log::pack(&changes.usage, now)? })
    }

    pub(super) async fn run(&self, client: &Client) -> std::result::Result<u64, tokio_postgres::Error> {
        let values: [&dyn Value; 2] = [&self.at, &self.changes];
        client.execute_if_any(self.statement.as_ref(), &values).await
    }
}
