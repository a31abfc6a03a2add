//! Deletes the oldest ended keys of accounts that have many.
//!
//! [`keys_to_delete`](metering_core::backend::decision::keys_to_delete) decides. A key is deleted with its secrets and
//! its meter; its daily totals are moved to its parent, so that no sum of the account or of a budget changes.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::Timestamp;
use metering_core::access::{Key, KeyNumber};
use metering_core::backend::decision::{self, KeyDeletion, KeyEnd};
use tokio_postgres::Row;

use crate::access::keys::draw_access;
use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{all, execute, key_number, one, optional_timestamp};
use crate::transactions::serialized::{SerializedWrite, lock_meter};

/// Keys that one transaction deletes. All other serialized writes, and charges of the account, wait for it.
const DELETED: usize = 500;

/// Daily totals that one transaction moves, unless a single key has more.
const MOVED: usize = 500;

/// The next account that has had so many keys that some may be deleted. Read from the index `api_key_many`.
const NEXT_ACCOUNT: &str = "SELECT min(account) FROM api_key WHERE number >= 1000 AND account > $1";

const _: () = assert!(Key::MAX_ENDED >= 1_000, "the index has all accounts with more ended keys");

/// The row of the next account after this one that may have keys to delete.
pub(crate) async fn next_account<C: GenericClient>(client: &C, after: i64) -> Result<Option<i64>> {
    Ok(one(client, NEXT_ACCOUNT, &[&after]).await?.try_get(0)?)
}

/// The keys of an account to delete, those below others first.
pub(crate) async fn to_delete<C: GenericClient>(client: &C, account: i64, now: Timestamp) -> Result<Vec<KeyDeletion>> {
    let mut used = BTreeSet::new();
    for row in all(client, "SELECT tail_day, tail FROM meter WHERE account = $1", &[&account]).await? {
        used.extend(Tail::of_row(&row, 0)?.totals()?.keys().map(|(_, key)| *key));
    }
    for row in all(client, "SELECT DISTINCT key FROM hold WHERE account = $1", &[&account]).await? {
        used.insert(key_number(&row, 0)?);
    }
    let sql = "SELECT number, parent, revoked_at, expires_at FROM api_key WHERE account = $1 ORDER BY number";
    let end = |row: &Row| {
        let number = key_number(row, 0)?;
        Ok(KeyEnd {
            number,
            parent: row.try_get::<_, Option<i64>>(1)?.map(|_| key_number(row, 1)).transpose()?,
            revoked_at: optional_timestamp(row, 2)?,
            expires_at: optional_timestamp(row, 3)?,
            is_in_use: used.contains(&number),
        })
    };
    let keys: Vec<KeyEnd> = all(client, sql, &[&account]).await?.iter().map(end).collect::<Result<_>>()?;
    Ok(decision::keys_to_delete(&keys, now))
}

/// Deletes some keys of an account, and returns how many.
pub(crate) async fn delete_some(write: &SerializedWrite<'_>, account: i64, now: Timestamp) -> Result<u64> {
    let client = write.client();
    lock_meter(client, account).await?;
    let mut deletions = to_delete(client, account, now).await?;
    deletions.truncate(DELETED);
    if deletions.is_empty() {
        return Ok(0);
    }
    let numbers: Vec<i64> = deletions.iter().map(|deletion| deletion.number.get().into()).collect();
    let sql = "SELECT key, day, line FROM usage_daily WHERE account = $1 AND key = ANY($2)";
    let mut totals: BTreeMap<KeyNumber, BTreeSet<(i64, i64)>> = BTreeMap::new();
    for row in all(client, sql, &[&account, &numbers]).await? {
        totals.entry(key_number(&row, 0)?).or_default().insert((row.try_get(1)?, row.try_get(2)?));
    }
    let (mut deleted, mut moved) = (0, 0);
    for KeyDeletion { number, heir } in deletions {
        let of_key = totals.remove(&number).unwrap_or_default();
        if deleted > 0 && moved + of_key.len() > MOVED {
            break;
        }
        moved += of_key.len();
        for (day, line) in &of_key {
            move_total(client, (*day, account, *line), number, heir).await?;
        }
        totals.entry(heir).or_default().extend(of_key);
        delete(client, account, number).await?;
        deleted += 1;
    }
    draw_access(client, account).await?;
    Ok(deleted)
}

/// Adds a daily total of a key to that of another, and deletes it.
async fn move_total<C: GenericClient>(
    client: &C,
    (day, account, line): (i64, i64, i64),
    key: KeyNumber,
    heir: KeyNumber,
) -> Result<()> {
    let add = "INSERT INTO usage_daily (day, account, line, key, calls, amount) \
               SELECT day, account, line, $5, calls, amount FROM usage_daily \
                 WHERE day = $1 AND account = $2 AND line = $3 AND key = $4 \
               ON CONFLICT (day, account, line, key) DO UPDATE \
               SET calls = usage_daily.calls + excluded.calls, amount = usage_daily.amount + excluded.amount";
    let remove = "DELETE FROM usage_daily WHERE day = $1 AND account = $2 AND line = $3 AND key = $4";
    let (key, heir) = (i64::from(key.get()), i64::from(heir.get()));
    execute(client, add, &[&day, &account, &line, &key, &heir]).await?;
    execute(client, remove, &[&day, &account, &line, &key]).await.map(drop)
}

/// Deletes a key with what only describes it.
async fn delete<C: GenericClient>(client: &C, account: i64, key: KeyNumber) -> Result<()> {
    let statements = [
        "DELETE FROM key_secret WHERE account = $1 AND key = $2",
        "DELETE FROM key_meter WHERE account = $1 AND key = $2",
        "DELETE FROM api_key WHERE account = $1 AND number = $2",
    ];
    for sql in statements {
        execute(client, sql, &[&account, &i64::from(key.get())]).await?;
    }
    Ok(())
}
