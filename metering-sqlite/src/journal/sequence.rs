//! The sequence of ids that ledger, recent activity and journal share, so that all of them sort into one history.

use metering_core::Timestamp;
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::journal::{Change, Row};

/// The newest id in use.
pub(crate) fn newest_in_sequence(connection: &Connection) -> Result<i64> {
    let (journal, ledger) = newest(connection)?;
    Ok(journal.max(ledger))
}

/// The newest ids of the journal and of the ledger. Folded rows may be gone from every table, but the marker keeps the
/// number of the last one.
fn newest(connection: &Connection) -> Result<(i64, i64)> {
    let sql = "SELECT max(coalesce((SELECT max(id) FROM charge_journal), 0), (SELECT floor FROM fold WHERE id = 1)), \
               coalesce((SELECT max(id) FROM ledger), 0)";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(store_error)
}

/// Writes a row of the journal.
pub(crate) fn insert(connection: &Connection, id: i64, row: &Row) -> Result<()> {
    let sql = "INSERT INTO charge_journal (id, entries) VALUES (?1, ?2)";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    statement.execute(params![id, row.pack()?]).map(drop).map_err(store_error)
}

/// Records a change of one account that no charge made. A process that caches the account reads the journal and drops
/// it.
pub(crate) fn record(connection: &Connection, account: i64, id: i64, change: Change, now: Timestamp) -> Result<()> {
    let (after, _) = newest(connection)?;
    insert(connection, id, &Row { after, at: now.unix_millis(), changes: vec![(account, change)] })
}

/// Records that an account's keys or rate limits changed.
pub(crate) fn record_settings(connection: &Connection, account: i64) -> Result<()> {
    let id = newest_in_sequence(connection)? + 1;
    record(connection, account, id, Change::Settings, Timestamp::from_unix_millis(0))
}
