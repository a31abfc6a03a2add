//! A temporary table of each account's latest entries, with the number of newer ones. It is filled in one pass over
//! ledger and activity, because the activity log is not ordered by account.

use metering_core::transfer::Section;
use metering_core::usage::ACTIVITY_KEPT;
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Result, store_error};

/// `recent_seen` records which state of the database `recent` was computed from.
const TABLES: &str = "
    DROP TABLE IF EXISTS temp.recent;
    DROP TABLE IF EXISTS temp.recent_seen;
    CREATE TEMP TABLE recent (
      id INTEGER PRIMARY KEY, account INTEGER NOT NULL, newer INTEGER NOT NULL, is_usage INTEGER NOT NULL
    ) STRICT;
    CREATE TEMP TABLE recent_seen (data_version INTEGER NOT NULL, changes INTEGER NOT NULL) STRICT;";

/// Ledger and activity share one id sequence.
const FILL: &str = "
    INSERT INTO temp.recent (id, account, newer, is_usage)
    SELECT id, account, newer, is_usage FROM (
      SELECT id, account, is_usage, row_number() OVER (PARTITION BY account ORDER BY id DESC) - 1 AS newer FROM (
        SELECT id, account, 0 AS is_usage FROM main.ledger
        UNION ALL
        SELECT u.id, u.account, 1 FROM main.activity u JOIN main.meter m ON m.account = u.account
        WHERE u.id > coalesce(m.activity_floor, 0)))
    WHERE newer < ?1";

const INDEX: &str = "CREATE INDEX temp.recent_usage ON recent (account, id) WHERE is_usage = 1";

/// Rebuilds the table if the section needs it and anything was written since it was last built.
pub(super) fn refresh(connection: &Connection, section: Section) -> Result<()> {
    if matches!(section, Section::Accounts | Section::Ledger | Section::Activity) && !is_fresh(connection)? {
        fill(connection).map_err(store_error)?;
    }
    Ok(())
}

fn is_fresh(connection: &Connection) -> Result<bool> {
    let sql = "SELECT 1 FROM sqlite_temp_schema WHERE name = 'recent_seen'";
    let there = connection.prepare_cached(sql).and_then(|mut s| s.exists([])).map_err(store_error)?;
    if !there {
        return Ok(false);
    }
    let sql = "SELECT data_version, changes FROM temp.recent_seen";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let seen: Option<(i64, i64)> = connection.query_row(sql, [], read).optional().map_err(store_error)?;
    Ok(seen == Some(state(connection).map_err(store_error)?))
}

/// Changes when another connection commits, and when this one writes.
fn state(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let version = connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
    Ok((version, connection.query_row("SELECT total_changes()", [], |row| row.get(0))?))
}

fn fill(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    connection.execute(FILL, [ACTIVITY_KEPT])?;
    connection.execute_batch(INDEX)?;
    let (version, changes) = state(connection)?;
    // This insert is itself one more change.
    connection
        .execute("INSERT INTO temp.recent_seen (data_version, changes) VALUES (?1, ?2)", [version, changes + 1])?;
    Ok(())
}
