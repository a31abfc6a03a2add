//! Deletes the events that an account has too many of. PostgreSQL finds them in one statement, which SQLite would run for
//! every event of the table.

use metering_core::Timestamp;
use metering_sql::{events, now};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::rows::{all, first};
use crate::script::Statements;

/// Deletes at most `limit` events beyond the newest `keep` of an account, of accounts that had an event after `since`.
/// Returns how many events were deleted.
pub(crate) fn forget(snapshot: &Snapshot<'_>, since: Timestamp, keep: u32, limit: u64) -> Result<u64> {
    let found = find(snapshot, since, keep, limit)?;
    now(events::delete(&mut Statements::new(snapshot), &found))
}

/// The numbers of these events.
fn find(connection: &Connection, since: Timestamp, keep: u32, limit: u64) -> Result<Vec<i64>> {
    let sql = "SELECT DISTINCT account FROM event WHERE created_at > ?1 AND account IS NOT NULL";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let accounts: Vec<i64> = all(&mut statement, [since.unix_millis()], |row| Ok(Ok(row.get(0)?)))?;
    let sql = "SELECT number FROM event WHERE account = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2";
    let mut newest_excess = connection.prepare_cached(sql).map_err(store_error)?;
    let sql = "SELECT number FROM event WHERE account = ?1 AND number <= ?2 ORDER BY number LIMIT ?3";
    let mut excess = connection.prepare_cached(sql).map_err(store_error)?;
    let mut found = Vec::new();
    for account in accounts {
        let last: Option<i64> = first(&mut newest_excess, params![account, keep], |row| Ok(Ok(row.get(0)?)))?;
        let Some(last) = last else { continue };
        let left = i64::try_from(limit.saturating_sub(found.len() as u64)).unwrap_or(i64::MAX);
        found.extend(all(&mut excess, params![account, last, left], |row| Ok(Ok(row.get::<_, i64>(0)?)))?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Unfolded;
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
        let deleted = [4, 4, 4]
            .map(|limit| forget(&Snapshot::new(&connection, &mut Unfolded::default()), since, 3, limit).unwrap());
        assert_eq!(deleted, [4, 3, 0]);
        let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT count(*) FROM event WHERE account = 2"), 10, "no new event: looked at another time");
        assert_eq!(count("SELECT min(number) FROM event WHERE account = 1"), 16);
        assert_eq!(count("SELECT event FROM delivery WHERE account = 1 AND is_head"), 16, "the next one can be sent");
        assert_eq!(count("SELECT count(*) FROM delivery"), 13);
    }
}
