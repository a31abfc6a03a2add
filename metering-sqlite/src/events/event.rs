//! The rows of events.

use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::events::{Event, EventKind, NewEvent};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Timestamp};
use rusqlite::{Connection, Row, params, params_from_iter};

use crate::error::{Result, corrupt_column, store_error};
use crate::events::line::Line;
use crate::rows::{all, first, parse, timestamp};

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
    let old = format!("SELECT number FROM event WHERE created_at <= ?1 ORDER BY created_at, number LIMIT {limit}");
    delete(connection, &old, &[until.unix_millis()])
}

/// Deletes at most `limit` events beyond the newest `keep` of an account, of accounts that had an event after `since`.
/// Returns how many events were deleted.
pub(crate) fn forget_excess(connection: &Connection, since: Timestamp, keep: u32, limit: usize) -> Result<usize> {
    let sql = "SELECT DISTINCT account FROM event WHERE created_at > ?1 AND account IS NOT NULL";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let accounts: Vec<i64> = all(&mut statement, [since.unix_millis()], |row| Ok(Ok(row.get(0)?)))?;
    let sql = "SELECT number FROM event WHERE account = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2";
    let mut newest_excess = connection.prepare_cached(sql).map_err(store_error)?;
    let mut deleted = 0;
    for account in accounts {
        let Some(last) = first(&mut newest_excess, params![account, keep], |row| Ok(Ok(row.get::<_, i64>(0)?)))? else {
            continue;
        };
        let left = limit.saturating_sub(deleted);
        let old = format!("SELECT number FROM event WHERE account = ?1 AND number <= ?2 ORDER BY number LIMIT {left}");
        deleted += delete(connection, &old, &[account, last])?;
    }
    Ok(deleted)
}

/// Deletes the events that a query finds, and their deliveries. Returns how many events were deleted.
fn delete(connection: &Connection, found: &str, values: &[i64]) -> Result<usize> {
    let sql = format!("DELETE FROM delivery WHERE event IN ({found}) RETURNING webhook, account, is_head");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let deleted = all(&mut statement, params_from_iter(values), |row| {
        let line = Line { webhook: row.get(0)?, account: row.get(1)? };
        Ok(Ok(row.get::<_, bool>(2)?.then_some(line)))
    })?;
    deleted.into_iter().flatten().try_for_each(|line| line.promote(connection))?;
    let sql = format!("DELETE FROM event WHERE number IN ({found})");
    connection.prepare_cached(&sql).and_then(|mut s| s.execute(params_from_iter(values))).map_err(store_error)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::migrate;

    #[test]
    fn an_account_keeps_its_newest_events() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        // Ten events each of accounts 1 and 2, in turns; a delivery of each; those of account 2 are old.
        let rows = "PRAGMA foreign_keys = off; \
            INSERT INTO webhook (id, public_id, account, url, kinds, state, secret, created_at) \
              VALUES (7, zeroblob(16), 1, '', '', 'active', 'x', 0); \
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20) \
            INSERT INTO event SELECT n, 1 + n % 2, 'key.created', '{}', CASE n % 2 WHEN 0 THEN 1000 ELSE 0 END FROM n; \
            INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at, is_head) \
              SELECT 7, number, account, 'pending', 0, 0, 0, number <= 2 FROM event";
        connection.execute_batch(rows).unwrap();
        let since = Timestamp::from_unix_millis(500);
        let deleted = [4, 4, 4].map(|limit| forget_excess(&connection, since, 3, limit).unwrap());
        assert_eq!(deleted, [4, 3, 0]);
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM event WHERE account = 2"), 10, "no new event: looked at another time");
        assert_eq!(count("SELECT min(number) FROM event WHERE account = 1"), 16);
        assert_eq!(count("SELECT event FROM delivery WHERE account = 1 AND is_head"), 16, "the next one can be sent");
        assert_eq!(count("SELECT count(*) FROM delivery"), 13);
    }
}
