//! Packs the recent activity of a database of version 5, which has a row for each entry.

use metering_core::access::KeyNumber;
use metering_core::charging::UsageKind;
use rusqlite::{Connection, Row};

use crate::error::{Result, store_error};
use crate::journal::Path;
use crate::rows::all;
use crate::usage::activity::{APPEND, Entry, KEPT, append, usage_line};

/// Fills `recent_activity` from `activity`.
pub(super) fn pack_activity(connection: &Connection) -> Result<()> {
    let sql = "SELECT account, coalesce(activity_floor, 0) FROM meter WHERE activity_head IS NOT NULL";
    let mut busy = connection.prepare(sql).map_err(store_error)?;
    let busy = all(&mut busy, [], |row| Ok(Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))))?;
    // Without an index, each account would need a pass over the whole log.
    let index = "CREATE INDEX activity_packing ON activity (account, id)";
    connection.execute(index, []).map_err(store_error)?;
    let sql = "SELECT id, line, amount, refund, calls, created_at, request_path FROM activity \
               WHERE account = ?1 AND id > ?2 ORDER BY id";
    let mut select = connection.prepare(sql).map_err(store_error)?;
    let mut count =
        connection.prepare("UPDATE meter SET activity_count = ?2 WHERE account = ?1").map_err(store_error)?;
    let mut insert = connection.prepare(APPEND).map_err(store_error)?;
    for (account, floor) in busy {
        let entries = all(&mut select, [account, floor], |row| entry(connection, row))?;
        let number = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        append(&mut insert, account, number, &entries[entries.len().saturating_sub(KEPT)..])?;
        count.execute([account, number]).map_err(store_error)?;
    }
    Ok(())
}

fn entry(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<Result<Entry>> {
    let (line, path): (i64, Option<String>) = (row.get(1)?, row.get(6)?);
    let (id, amount) = (row.get(0)?, row.get(2)?);
    let kind = if row.get(3)? { UsageKind::Refunded } else { UsageKind::Charged };
    let (calls, created_at) = (row.get::<_, i64>(4)?.unsigned_abs(), row.get(5)?);
    Ok(usage_line(connection, line).map(|of| {
        let path = Path::of(path.as_deref(), &of.route_template);
        Entry { id, line, amount, kind, calls, created_at, path, key: KeyNumber::FIRST }
    }))
}
