//! Events. They are written with their deliveries by [`Executor::write_events`].

use metering_core::backend::{one_more_than, page_of_rows, row_of_cursor};
use metering_core::events::{Event, NewEvent};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Timestamp};

use crate::executor::Executor;
use crate::fault::Result;
use crate::lines;
use crate::record::{self, table};
use crate::row::only;
use crate::transfer::DeliveryRecord;
use crate::value::Value;
use crate::values;

table! {
    "event" by ["number"] of Event {
        Own(number), Owner(account), Own(kind), Own(data), Own(created_at)
    }
}

/// What follows `FROM event` in the list of an account's events.
pub const LISTED: &str = "WHERE event.account = (SELECT a.id FROM account a WHERE a.org_id = ?1) AND event.number < ?2 \
     ORDER BY event.number DESC LIMIT ?3";

/// The events of an account, newest first, at most `limit` after a cursor.
pub async fn list(db: &mut dyn Executor, id: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<Page<Event>> {
    let found: Vec<Event> = record::list(db, LISTED, &values![id, before(after)?, one_more_than(limit)]).await?;
    Ok(page_of_rows(found.into_iter().map(|event| (event.number, event)).collect(), limit))
}

/// Lists of events and deliveries are newest first: a page begins below the last number of the page before.
///
/// # Errors
/// When the cursor is not of this store.
pub fn before(after: Option<&Cursor>) -> Result<i64> {
    if after.is_none() { Ok(i64::MAX) } else { Ok(row_of_cursor(after)?) }
}

/// Writes an event without deliveries, and returns its number. `account` is as the table has it.
pub(crate) async fn append(db: &mut dyn Executor, account: Option<i64>, event: &NewEvent) -> Result<i64> {
    let sql = "INSERT INTO event (account, kind, data, created_at) VALUES (?1, ?2, ?3, ?4) RETURNING number";
    only(&db.query(sql, &values![account, event.data.kind(), event.json(), event.created_at]).await?)?.get(0)
}

/// Deletes the oldest events of `until` or earlier with their deliveries, at most `limit`, and returns how many.
pub async fn forget(db: &mut dyn Executor, until: Timestamp, limit: u64) -> Result<u64> {
    // The limit is a literal: with an unknown limit PostgreSQL would plan for a large one.
    let old = numbers(db, &format!("created_at <= ?1 ORDER BY created_at LIMIT {limit}"), &values![until]).await?;
    delete(db, &old).await
}

async fn numbers(db: &mut dyn Executor, condition: &str, values: &[Value]) -> Result<Vec<i64>> {
    let sql = format!("SELECT number FROM event WHERE {condition}");
    db.query(&sql, values).await?.iter().map(|row| row.get(0)).collect()
}

/// The newest event that each account has too many of, for accounts that had an event after `?1` and have more than `?2`.
/// Events of no account are all kept.
const EXCESS: &str = "SELECT account, newest FROM (SELECT account, ( \
       SELECT e.number FROM event e WHERE e.account = recent.account ORDER BY e.number DESC LIMIT 1 OFFSET ?2) AS newest \
     FROM (SELECT DISTINCT account FROM event WHERE created_at > ?1 AND account <> 0) recent) excess \
     WHERE newest IS NOT NULL";

/// Deletes events beyond the newest `keep` of an account, of accounts that had one after `since`, at most `limit`, and
/// returns how many.
pub async fn forget_excess(db: &mut dyn Executor, since: Timestamp, keep: u32, limit: u64) -> Result<u64> {
    let mut found: Vec<i64> = Vec::new();
    for row in db.query(EXCESS, &values![since, keep]).await? {
        let (account, newest): (i64, i64) = (row.get(0)?, row.get(1)?);
        let left = limit.saturating_sub(found.len() as u64);
        let excess = "account = ?1 AND number <= ?2 ORDER BY number LIMIT ?3";
        found.extend(numbers(db, excess, &values![account, newest, left]).await?);
    }
    delete(db, &found).await
}

/// Deletes events and their deliveries, and returns how many events. If they held up later ones, these can be sent.
pub async fn delete(db: &mut dyn Executor, numbers: &[i64]) -> Result<u64> {
    if numbers.is_empty() {
        return Ok(0);
    }
    let values = values![numbers];
    let lines = lines::of_heads(db, &values).await?;
    lines::lock(db, &lines).await?;
    record::delete::<DeliveryRecord>(db, "WHERE event {in ?1}", values.clone()).await?;
    let deleted = record::delete::<Event>(db, "WHERE number {in ?1}", values).await?;
    lines::mark(db, &lines).await?;
    Ok(deleted)
}
