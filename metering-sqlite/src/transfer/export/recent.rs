//! Temporary tables of each account's latest entries, unpacked, with the number of newer ones.

use std::collections::HashMap;
use std::sync::Arc;

use metering_core::usage::ACTIVITY_KEPT;
use metering_sql::transfer::Section;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Result, store_error};
use crate::usage::activity::{Entry, unpack, usage_line};
use crate::usage::kind;

/// `unpacked` has the entries of the blocks of recent activity. `recent_seen` records which state of the database `recent` was computed from.
const TABLES: &str = "
    DROP TABLE IF EXISTS temp.recent;
    DROP TABLE IF EXISTS temp.recent_seen;
    DROP TABLE IF EXISTS temp.unpacked;
    CREATE TEMP TABLE unpacked (
      id INTEGER PRIMARY KEY, account INTEGER NOT NULL, line INTEGER NOT NULL, amount INTEGER NOT NULL,
      kind INTEGER NOT NULL, calls INTEGER NOT NULL, request_path TEXT, created_at INTEGER NOT NULL,
      key INTEGER NOT NULL
    ) STRICT;
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
        SELECT id, account, 1 FROM temp.unpacked))
    WHERE newer < ?1";

const INDEX: &str = "CREATE INDEX temp.recent_usage ON recent (account, id) WHERE is_usage = 1";

/// Rebuilds the table if the section needs it and anything was written since it was last built.
pub(super) fn refresh(connection: &Connection, section: Section) -> Result<()> {
    if matches!(section, Section::Accounts | Section::Ledger | Section::Activity) && !is_fresh(connection)? {
        fill(connection)?;
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

fn fill(connection: &Connection) -> Result<()> {
    connection.execute_batch(TABLES).map_err(store_error)?;
    unpack_activity(connection)?;
    let number = || {
        connection.execute(FILL, [ACTIVITY_KEPT])?;
        connection.execute_batch(INDEX)?;
        let (version, changes) = state(connection)?;
        // This insert is itself one more change.
        let sql = "INSERT INTO temp.recent_seen (data_version, changes) VALUES (?1, ?2)";
        connection.execute(sql, [version, changes + 1])
    };
    number().map(drop).map_err(store_error)
}

fn unpack_activity(connection: &Connection) -> Result<()> {
    let mut blocks = connection.prepare("SELECT account, entries FROM recent_activity").map_err(store_error)?;
    let sql = "INSERT INTO temp.unpacked (id, account, line, amount, kind, calls, request_path, created_at, key) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let mut insert = connection.prepare(sql).map_err(store_error)?;
    let mut templates: HashMap<i64, Arc<str>> = HashMap::new();
    let mut rows = blocks.query([]).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        let account: i64 = row.get(0).map_err(store_error)?;
        for entry in unpack(row.get_ref(1).and_then(|blob| Ok(blob.as_blob()?)).map_err(store_error)?)? {
            let Entry { id, line, amount, kind, calls, created_at, path, key } = entry;
            let template = match templates.get(&line) {
                Some(known) => Arc::clone(known),
                None => Arc::clone(templates.entry(line).or_insert(usage_line(connection, line)?.route_template)),
            };
            let path = path.get(template);
            let (calls, kind) = (i64::try_from(calls).unwrap_or(i64::MAX), kind::number(kind));
            let values = params![id, account, line, amount, kind, calls, path, created_at, key.get()];
            insert.execute(values).map_err(store_error)?;
        }
    }
    Ok(())
}
