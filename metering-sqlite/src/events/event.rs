//! The rows of events.

use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::events::{Event, EventKind, NewEvent};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt_column, store_error};
use crate::events::line::Line;
use crate::rows::{all, parse, timestamp};

/// The columns that [`event`] reads from `event e LEFT JOIN account a`.
pub(crate) const COLUMNS: &str = "e.number, a.org_id, e.kind, e.data, e.created_at";

const OF_ACCOUNT: &str = "e.account = (SELECT id FROM account WHERE org_id = ?1) AND e.number < ?2 \
     ORDER BY e.number DESC LIMIT ?3";

/// Writes an event without deliveries, and returns its number.
pub(crate) fn append(connection: &Connection, account: Option<i64>, event: &NewEvent) -> Result<i64> {
    let sql = "INSERT INTO event (account, kind, data, created_at) VALUES (?1, ?2, ?3, ?4)";
    let values = params![account, event.data.kind().as_str(), event.json(), event.created_at.unix_millis()];
    connection.prepare_cached(sql).and_then(|mut s| s.insert(values)).map_err(store_error)
}

/// The events of an account before a number, newest first, at most `limit`.
pub(crate) fn list(
    connection: &Connection,
    account: &AccountId,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Event>> {
    let mut statement = connection.prepare_cached(&select(OF_ACCOUNT)).map_err(store_error)?;
    let values = params![account.as_str(), before(after)?, one_more_than(limit)];
    let rows = all(&mut statement, values, |row| Ok(event(row, 0)?.map(|event| (event.number, event))))?;
    Ok(page_of_rows(rows, limit))
}

fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM event e LEFT JOIN account a ON a.id = e.account WHERE {condition}")
}

/// Lists are newest first: a page begins below the last number of the page before.
pub(crate) fn before(after: Option<&Cursor>) -> Result<i64> {
    if after.is_none() { Ok(i64::MAX) } else { row_of_cursor(after) }
}

/// Deletes at most `limit` events of `until` or earlier with their deliveries. Returns how many events were deleted.
pub(crate) fn forget(connection: &Connection, until: Timestamp, limit: usize) -> Result<usize> {
    let sql = format!(
        "DELETE FROM delivery WHERE event IN \
         (SELECT number FROM event WHERE created_at <= ?1 ORDER BY created_at, number LIMIT {limit}) \
         RETURNING webhook, account, is_head"
    );
    let until = [until.unix_millis()];
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let deleted = all(&mut statement, until, |row| {
        let line = Line { webhook: row.get(0)?, account: row.get(1)? };
        Ok(Ok(row.get::<_, bool>(2)?.then_some(line)))
    })?;
    deleted.into_iter().flatten().try_for_each(|line| line.promote(connection))?;
    let sql = format!(
        "DELETE FROM event WHERE number IN \
         (SELECT number FROM event WHERE created_at <= ?1 ORDER BY created_at, number LIMIT {limit})"
    );
    connection.prepare_cached(&sql).and_then(|mut s| s.execute(until)).map_err(store_error)
}

/// Reads an event from [`COLUMNS`], which start at `first`.
pub(crate) fn event(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<Event>> {
    let number = row.get(first)?;
    let (org_id, kind): (Option<String>, String) = (row.get(first + 1)?, row.get(first + 2)?);
    let (data, created_at) = (row.get(first + 3)?, timestamp(row, first + 4)?);
    let read = || {
        let account = org_id.as_deref().map(parse).transpose()?;
        let unknown = || corrupt_column("event.kind", format_args!("{kind:?} is no kind of event"));
        let kind = EventKind::from_name(&kind).ok_or_else(unknown)?;
        Ok(Event { number, account, kind, data, created_at })
    };
    Ok(read())
}

/// The query whose plan is tested, with a step of its plan.
#[cfg(test)]
pub(super) fn query() -> (String, &'static str) {
    (select(OF_ACCOUNT), "SEARCH e USING INDEX event_account (account=? AND number<?)")
}
