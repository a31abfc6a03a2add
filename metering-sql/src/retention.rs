//! Deletes records that are older than the operator wants to keep them.

use metering_core::backend::row_of_cursor;
use metering_core::operators::Retention;
use metering_core::store::Cursor;
use metering_core::{StoreError, Timestamp};

use crate::backend::{Backend, delete, snapshot, write};
use crate::executor::{Executor, WriteMode};
use crate::fault::Result;
use crate::transfer::DeliveryRecord;
use crate::{audit, events, record, values};

/// How many accounts' recent activity a call reads: it takes milliseconds, and a day's calls cover 288,000 accounts.
const ACCOUNTS: i64 = 200;
/// The maximum number of rows of a kind that one transaction reads.
const MOST: u64 = 5_000;

/// Deletes a slice of each kind, and the paths in the recent activity of the next accounts.
///
/// # Errors
/// Those of the database, and when the cursor is not of this store.
pub async fn forget(
    db: &dyn Backend,
    kept: &Retention,
    now: Timestamp,
    after: Option<&Cursor>,
) -> Result<(u64, Option<Cursor>), StoreError> {
    let Retention { activity, events, deliveries, audit } = *kept;
    let mut forgotten = 0;
    if events.or(deliveries).or(audit).is_some() {
        let before = [events, deliveries, audit].map(|kept| kept.map(|kept| now.saturating_sub(kept)));
        let args = (before, db.deleted_at_once().min(MOST));
        forgotten = delete(db, args, |db, (before, limit)| Box::pin(forget_some(db, *before, *limit))).await?;
    }
    let Some(until) = activity.map(|kept| now.saturating_sub(kept)) else { return Ok((forgotten, None)) };
    let args = (row_of_cursor(after)?, until);
    let (with_paths, last) = snapshot(db, args, |db, (after, until)| Box::pin(paths(db, *after, *until))).await?;
    for account in with_paths {
        let args = (account, until);
        forgotten += write(db, args, |db, (account, until)| db.erase_paths(*account, *until, WriteMode::Write)).await?;
    }
    Ok((forgotten, last.map(|last| Cursor::new(last.to_string()))))
}

async fn forget_some(db: &mut dyn Executor, before: [Option<Timestamp>; 3], limit: u64) -> Result<u64> {
    let [events_until, deliveries_until, audit_until] = before;
    let mut forgotten = 0;
    // First, because it may wait for charges.
    if let Some(until) = events_until {
        forgotten += events::forget(db, until, limit).await?;
    }
    if let Some(until) = deliveries_until {
        for state in ["delivered", "parked"] {
            forgotten += forget_deliveries(db, state, until, limit).await?;
        }
    }
    if let Some(until) = audit_until {
        forgotten += audit::forget(db, until, limit).await?;
    }
    Ok(forgotten)
}

/// Deletes those of the first `limit` deliveries in a state that ended by `until`. They are in the order of their events.
async fn forget_deliveries(db: &mut dyn Executor, state: &str, until: Timestamp, limit: u64) -> Result<u64> {
    let sql = format!("SELECT id, coalesce(last_at, since) FROM delivery WHERE state = ?1 ORDER BY id LIMIT {limit}");
    let mut old: Vec<i64> = Vec::new();
    for row in db.query(&sql, &values![state]).await? {
        if row.get::<Timestamp>(1)? <= until {
            old.push(row.get(0)?);
        }
    }
    if old.is_empty() { Ok(0) } else { record::delete::<DeliveryRecord>(db, "WHERE id {in ?1}", values![old]).await }
}

/// Of the next accounts, those with paths of `until` or earlier, and the last account, if more may follow.
async fn paths(db: &mut dyn Executor, after: i64, until: Timestamp) -> Result<(Vec<i64>, Option<i64>)> {
    let sql = "SELECT id FROM account WHERE id > ?1 ORDER BY id LIMIT ?2";
    let accounts = db.query(sql, &values![after, ACCOUNTS]).await?;
    let accounts = accounts.iter().map(|row| row.get(0)).collect::<Result<Vec<i64>>>()?;
    let last = accounts.last().copied().filter(|_| i64::try_from(accounts.len()) == Ok(ACCOUNTS));
    let mut with_paths = Vec::new();
    for account in accounts {
        if db.erase_paths(account, until, WriteMode::DryRun).await? > 0 {
            with_paths.push(account);
        }
    }
    Ok((with_paths, last))
}
