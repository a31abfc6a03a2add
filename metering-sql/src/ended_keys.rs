//! Deletes the oldest ended keys of accounts that have many.
//!
//! [`keys_to_delete`](metering_core::backend::decision::keys_to_delete) decides. A key is deleted with its secrets and
//! its meter; its daily totals are moved to its parent, so that no sum of the account or of a budget changes.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::access::{Key, KeyNumber};
use metering_core::backend::decision::{self, KeyDeletion, KeyEnd};
use metering_core::{Day, StoreError, Timestamp};

use crate::backend::{Backend, delete, read, snapshot};
use crate::executor::Executor;
use crate::fault::Result;
use crate::keys::DELETE_METER;
use crate::row::{Row, only};
use crate::{lines, usage, values};

/// Keys that one transaction deletes.
const DELETED: usize = 500;

/// Days of usage that one transaction moves, unless a single key has more.
const MOVED: usize = 500;

/// The next account that has had so many keys that some may be deleted. Read from the index `api_key_many`.
pub const NEXT_ACCOUNT: &str = "SELECT min(account) FROM api_key WHERE number >= 1000 AND account > ?1";

const _: () = assert!(Key::MAX_ENDED >= 1_000, "the index has all accounts with more ended keys");

/// The keys of an account that have holds.
pub const KEYS_OF_HOLDS: &str = "SELECT DISTINCT key FROM hold WHERE account = ?1";

/// Adds the daily totals of a key on one day to those of another.
const ADD: &str = "INSERT INTO usage_daily (day, account, line, key, calls, amount) \
     SELECT day, account, line, CAST(?4 AS BIGINT), calls, amount FROM usage_daily WHERE account = ?1 AND key = ?2 AND day = ?3 \
     ON CONFLICT (day, account, line, key) DO UPDATE \
     SET calls = usage_daily.calls + excluded.calls, amount = usage_daily.amount + excluded.amount";

/// Deletes the daily totals of a key on one day.
const REMOVE: &str = "DELETE FROM usage_daily WHERE account = ?1 AND key = ?2 AND day = ?3";

/// Deletes a key with what only describes it. SQLite has an index for the secrets of each of the first two.
pub const DELETE: [&str; 5] = [
    "DELETE FROM key_secret WHERE account = ?1 AND key = ?2 AND revoked_at IS NULL",
    "DELETE FROM key_secret WHERE account = ?1 AND key = ?2 AND revoked_at IS NOT NULL",
    DELETE_METER,
    "DELETE FROM token_window WHERE account = ?1 AND key = ?2",
    "DELETE FROM api_key WHERE account = ?1 AND number = ?2",
];

/// Deletes ended keys beyond the newest of each account, and returns how many. A read-only transaction finds the rows
/// to delete, so other transactions wait only while keys are deleted.
pub(crate) async fn forget(db: &dyn Backend, now: Timestamp) -> Result<u64, StoreError> {
    let (mut forgotten, mut last) = (0_u64, 0_i64);
    while let Some(account) = read(db, last, |db, last| Box::pin(next_account(db, *last))).await? {
        let args = (account, now);
        while !snapshot(db, args, |db, (account, now)| Box::pin(to_delete(db, *account, *now))).await?.is_empty() {
            let deleted = delete(db, args, |db, (account, now)| Box::pin(delete_some(db, *account, *now))).await?;
            if deleted == 0 {
                break;
            }
            forgotten = forgotten.saturating_add(deleted);
        }
        last = account;
    }
    Ok(forgotten)
}

/// The row of the next account after this one that may have keys to delete.
async fn next_account(db: &mut dyn Executor, after: i64) -> Result<Option<i64>> {
    only(&db.query(NEXT_ACCOUNT, &values![after]).await?)?.get(0)
}

/// The keys of an account to delete, child keys first.
async fn to_delete(db: &mut dyn Executor, account: i64, now: Timestamp) -> Result<Vec<KeyDeletion>> {
    let unfolded = db.unfolded_usage(Some(account)).await?;
    let mut used: BTreeSet<KeyNumber> = unfolded.into_iter().map(|(_, part)| part.key).collect();
    for row in db.query(KEYS_OF_HOLDS, &values![account]).await? {
        used.insert(row.get(0)?);
    }
    let sql = "SELECT number, parent, revoked_at, expires_at FROM api_key WHERE account = ?1 ORDER BY number";
    let end = |row: &Row| {
        let number = row.get(0)?;
        let (parent, is_in_use) = (row.get(1)?, used.contains(&number));
        Ok(KeyEnd { number, parent, revoked_at: row.get(2)?, expires_at: row.get(3)?, is_in_use })
    };
    let keys: Vec<KeyEnd> = db.query(sql, &values![account]).await?.iter().map(end).collect::<Result<_>>()?;
    Ok(decision::keys_to_delete(&keys, now))
}

/// Deletes some keys of an account, and returns how many.
async fn delete_some(db: &mut dyn Executor, account: i64, now: Timestamp) -> Result<u64> {
    lines::lock_meters(db, &[account]).await?;
    let mut deletions = to_delete(db, account, now).await?;
    deletions.truncate(DELETED);
    if deletions.is_empty() {
        return Ok(0);
    }
    let numbers: Vec<KeyNumber> = deletions.iter().map(|deletion| deletion.number).collect();
    let mut days: BTreeMap<KeyNumber, BTreeSet<Day>> = BTreeMap::new();
    for part in usage::of_keys(db, account, &numbers, Day::from_unix_days(i64::MIN)).await? {
        days.entry(part.key).or_default().insert(part.day);
    }
    let (mut keys, mut moves, mut removals) = (Vec::new(), Vec::new(), Vec::new());
    for KeyDeletion { number, heir } in deletions {
        let of_key = days.remove(&number).unwrap_or_default();
        if !keys.is_empty() && moves.len() + of_key.len() > MOVED {
            break;
        }
        moves.extend(of_key.iter().map(|day| values![account, number, day, heir]));
        removals.extend(of_key.iter().map(|day| values![account, number, day]));
        days.entry(heir).or_default().extend(of_key);
        keys.push(values![account, number]);
    }
    // In this order: a key may have inherited from one of those before it.
    db.execute(ADD, &moves).await?;
    db.execute(REMOVE, &removals).await?;
    for sql in DELETE {
        db.execute(sql, &keys).await?;
    }
    db.settings_changed(account).await?;
    Ok(keys.len() as u64)
}
