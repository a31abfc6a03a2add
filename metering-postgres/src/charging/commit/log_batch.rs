//! Writes the row of a commit's outcome, and with the same statement the commit's usage for the log, if one is open.
//!
//! Until this node has found a log open, the row is inserted only if none is: otherwise the statement fails, and the batch
//! is committed again, with its usage. So without a log a commit sends and writes nothing more, and yet the first commit
//! after any process opened one is in it.
//!
//! The condition is evaluated in the last round trip, after the meters are locked, and
//! [`begin_log`](metering_core::store::LogStore::begin_log) locks the table of meters against that. So a commit either
//! ends before the log begins, and is part of the opening funds, or sees that the log is open. The row of `log_batch` gets
//! its id under the locks too, so ids of one account follow the order of its commits.

use metering_core::Timestamp;
use metering_core::charging::Changes;
use metering_sql::log;

use crate::connection::session::{Client, GenericClient, Prepared};
use crate::connection::value::Value;
use crate::error::Result;
use crate::transactions::outcome::{INSERT, TransactionId};

/// Fails with a division by zero if a log is open.
const WITHOUT_LOG: &str = "INSERT INTO outcome (id, noted_at) SELECT $1::BYTEA, $2::BIGINT \
     WHERE 1 / (NOT EXISTS (SELECT 1 FROM log_open))::INT = 1";

const WITH_LOG: &str = "WITH noted AS (INSERT INTO log_batch (at, changes) SELECT $2::BIGINT, $3::BYTEA \
     WHERE EXISTS (SELECT 1 FROM log_open)) \
     INSERT INTO outcome (id, noted_at) VALUES ($1::BYTEA, $2::BIGINT)";

/// The statement that writes the outcome.
pub(super) struct OutcomeWrite<'c> {
    statement: Prepared<'c>,
    id: TransactionId,
    at: i64,
    /// Usage for the log, if one was found open.
    usage: Option<Vec<u8>>,
}

impl<'c> OutcomeWrite<'c> {
    /// Prepares it, so that running it can be pipelined. `has_log` is whether this node has found a log open.
    pub(super) async fn prepare(
        client: &'c Client,
        (id, has_log): (TransactionId, bool),
        changes: &Changes<i64, i64>,
        now: Timestamp,
    ) -> Result<Self> {
        let (sql, usage) = if changes.usage.is_empty() {
            (INSERT, None)
        } else if has_log {
            (WITH_LOG, Some(log::pack(&changes.usage, now)?))
        } else {
            (WITHOUT_LOG, None)
        };
        Ok(Self { statement: client.prepare(sql).await?, id, at: now.unix_millis(), usage })
    }

    pub(super) async fn run(&self, client: &Client) -> std::result::Result<u64, tokio_postgres::Error> {
        let id = self.id.bytes();
        if let Some(usage) = &self.usage {
            let values: [&dyn Value; 3] = [&id, &self.at, usage];
            return client.execute(&self.statement, &values).await;
        }
        let values: [&dyn Value; 2] = [&id, &self.at];
        client.execute(&self.statement, &values).await
    }
}
