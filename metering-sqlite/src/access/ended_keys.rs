//! Deletes the oldest ended keys of accounts that have many.
//!
//! [`keys_to_delete`](metering_core::backend::decision::keys_to_delete) decides. A key is deleted with its secrets and
//! its meter; its daily totals are moved to its parent, so that no sum of the account or of a budget changes.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::Timestamp;
use metering_core::access::{Key, KeyNumber};
use metering_core::backend::decision::{self, KeyDeletion, KeyEnd};
use rusqlite::{Connection, Row, params};

use crate::access::key_tree::ALL_DAYS;
use crate::access::keys::optional_time;
use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::journal::sequence::record_settings;
use crate::rows::{all, first};
use crate::usage::parts::{Part, parts};

/// The next account that has had so many keys that some may be deleted. Read from the index `api_key_many`.
const NEXT_ACCOUNT: &str = "SELECT min(account) FROM api_key WHERE number >= 1000 AND account > ?1";

const _: () = assert!(Key::MAX_ENDED >= 1_000, "the index has all accounts with more ended keys");

/// Daily totals that one transaction moves, unless a single key has more.
const MOVED: usize = 500;

/// The row of the next account after this one that may have keys to delete.
pub(crate) fn next_account(connection: &Connection, after: i64) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached(NEXT_ACCOUNT).map_err(store_error)?;
    let found = first(&mut statement, [after], |row| row.get::<_, Option<i64>>(0).map(Ok))?;
    Ok(found.flatten())
}

/// The keys of an account to delete, those below others first.
pub(crate) fn to_delete(snapshot: &Snapshot<'_>, account: i64, now: Timestamp) -> Result<Vec<KeyDeletion>> {
    let mut used: BTreeSet<u32> = {
        let unfolded = snapshot.unfolded()?;
        unfolded.usage_of(account).map(|(_, usage)| usage.key.get()).collect()
    };
    let sql = "SELECT DISTINCT key FROM hold WHERE account = ?1";
    let mut statement = snapshot.prepare_cached(sql).map_err(store_error)?;
    used.extend(all(&mut statement, [account], |row| row.get::<_, u32>(0).map(Ok))?);
    let sql = "SELECT number, parent, revoked_at, expires_at FROM api_key WHERE account = ?1 ORDER BY number";
    let mut statement = snapshot.prepare_cached(sql).map_err(store_error)?;
    let end = |row: &Row<'_>| {
        let (number, parent): (u32, Option<u32>) = (row.get(0)?, row.get(1)?);
        Ok(Ok(KeyEnd {
            number: KeyNumber::new(number),
            parent: parent.map(KeyNumber::new),
            revoked_at: optional_time(row, 2)?,
            expires_at: optional_time(row, 3)?,
            is_in_use: used.contains(&number),
        }))
    };
    Ok(decision::keys_to_delete(&all(&mut statement, [account], end)?, now))
}

/// Deletes at most `limit` keys of an account, and returns how many.
pub(crate) fn delete_some(snapshot: &Snapshot<'_>, account: i64, now: Timestamp, limit: usize) -> Result<usize> {
    let deletions = to_delete(snapshot, account, now)?;
    if deletions.is_empty() {
        return Ok(0);
    }
    let mut totals: BTreeMap<KeyNumber, Vec<Part>> = BTreeMap::new();
    for part in parts(snapshot, account, ALL_DAYS)? {
        totals.entry(part.key).or_default().push(part);
    }
    let (mut deleted, mut moved) = (0, 0);
    for KeyDeletion { number, heir } in deletions.into_iter().take(limit) {
        let of_key = totals.remove(&number).unwrap_or_default();
        if deleted > 0 && moved + of_key.len() > MOVED {
            break;
        }
        for part in of_key {
            move_total(snapshot, account, &part, heir).map_err(store_error)?;
            totals.entry(heir).or_default().push(Part { key: heir, ..part });
            moved += 1;
        }
        delete(snapshot, account, number).map_err(store_error)?;
        deleted += 1;
    }
    record_settings(snapshot, account)?;
    Ok(deleted)
}

/// Adds a daily total of a key to that of another, and deletes it.
fn move_total(connection: &Connection, account: i64, part: &Part, heir: KeyNumber) -> rusqlite::Result<()> {
    let add = "INSERT INTO usage_daily (day, account, line, key, calls, amount) \
               SELECT day, account, line, ?5, calls, amount FROM usage_daily \
                 WHERE day = ?1 AND account = ?2 AND line = ?3 AND key = ?4 \
               ON CONFLICT (day, account, line, key) DO UPDATE \
               SET calls = usage_daily.calls + excluded.calls, amount = usage_daily.amount + excluded.amount";
    let remove = "DELETE FROM usage_daily WHERE day = ?1 AND account = ?2 AND line = ?3 AND key = ?4";
    let (day, line, key) = (part.day.unix_days(), part.line, part.key.get());
    connection.prepare_cached(add)?.execute(params![day, account, line, key, heir.get()])?;
    connection.prepare_cached(remove)?.execute(params![day, account, line, key]).map(drop)
}

/// Deletes a key with what only describes it.
fn delete(connection: &Connection, account: i64, key: KeyNumber) -> rusqlite::Result<()> {
    let statements = [
        // Two statements, each with an index of its own.
        "DELETE FROM key_secret WHERE account = ?1 AND key = ?2 AND revoked_at IS NULL",
        "DELETE FROM key_secret WHERE account = ?1 AND key = ?2 AND revoked_at IS NOT NULL",
        "DELETE FROM key_meter WHERE account = ?1 AND key = ?2",
        "DELETE FROM api_key WHERE account = ?1 AND number = ?2",
    ];
    for sql in statements {
        connection.prepare_cached(sql)?.execute(params![account, key.get()])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::migrate;

    /// However many keys, secrets and holds there are.
    #[test]
    fn deleting_a_key_reads_only_indexes() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let old_secrets = metering_sql::keys::old_secrets();
        let table = [
            (&*old_secrets, "key_secret_ended"),
            (&*old_secrets, "key_secret_live"),
            (NEXT_ACCOUNT, "api_key_many"),
            ("SELECT DISTINCT key FROM hold WHERE account = ?1", "hold_key"),
            ("SELECT 1 FROM api_key WHERE account = ?1 AND parent = ?2", "api_key_parent"),
            ("DELETE FROM key_secret WHERE account = ?1 AND key = ?2 AND revoked_at IS NULL", "key_secret_live"),
            ("DELETE FROM key_secret WHERE account = ?1 AND key = ?2 AND revoked_at IS NOT NULL", "key_secret_ended"),
        ];
        for (sql, index) in table {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = vec![1_i64; statement.parameter_count()];
            let steps = statement.query_map(rusqlite::params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<_> = steps.map(Result::unwrap).collect();
            assert!(steps.iter().any(|step| step.starts_with("SEARCH") && step.contains(index)), "{sql}: {steps:?}");
        }
    }
}
