//! The journal as a source of the log: rows that the log has not taken yet stay in it, folded or not.

use metering_core::charging::UsageChange;
use metering_core::{Credits, Timestamp};
use metering_sql::JournalCommit;
use rusqlite::Connection;

use crate::error::{Result, store_error};
use crate::journal::{Change, Row};

/// Rows that one step of the log deletes. They are left if the log was behind, and folding deletes the rest.
const TRIMMED: i64 = 1_024;

/// The rows after `after`, until they have `most` changes of usage.
pub(crate) fn commits(connection: &Connection, after: i64, most: usize) -> Result<Vec<JournalCommit>> {
    let sql = "SELECT id, entries FROM charge_journal WHERE id > ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([after]).map_err(store_error)?;
    let (mut commits, mut size) = (Vec::new(), 0);
    while size < most
        && let Some(row) = rows.next().map_err(store_error)?
    {
        let id: i64 = row.get(0).map_err(store_error)?;
        let unpacked = Row::unpack(row.get_ref(1).and_then(|blob| Ok(blob.as_blob()?)).map_err(store_error)?)?;
        let at = Timestamp::from_unix_millis(unpacked.at);
        let usage: Vec<_> = unpacked.changes.iter().filter_map(|change| usage(change, at)).collect();
        size += usage.len();
        commits.push(JournalCommit { id, at, usage });
    }
    Ok(commits)
}

/// Ledger entries are in the ledger too, and holds do not change the funds.
fn usage((account, change): &(i64, Change), at: Timestamp) -> Option<UsageChange<i64, i64>> {
    let Change::Usage(usage) = change else { return None };
    Some(UsageChange {
        account: *account,
        day: usage.day(at),
        line: usage.line(),
        key: usage.key,
        kind: usage.kind(),
        calls: usage.calls(),
        amount: Credits::from_atoms(usage.added_atoms().saturating_abs()),
        request_path: None,
    })
}

/// Deletes rows up to `taken` that are folded.
pub(crate) fn trim(connection: &Connection, taken: i64) -> Result<()> {
    let sql = "DELETE FROM charge_journal WHERE id <= (SELECT max(id) FROM (SELECT id FROM charge_journal \
               WHERE id <= min(?1, (SELECT floor FROM fold WHERE id = 1)) ORDER BY id LIMIT ?2))";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    statement.execute([taken, TRIMMED]).map(drop).map_err(store_error)
}
