//! Claims of pending authorizations, so that one process at a time goes on with each.
//!
//! A reader looks for those that nobody has claimed, so that charges do not wait. The writer then checks each that was
//! found: another process may have claimed it meanwhile.

use std::time::Duration;

use metering_core::offers::{AuthorizationId, AuthorizationRecord};
use metering_core::{StoreError, Timestamp};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::offers::rows;
use crate::rows::all;

/// The pending ones whose claims have ended, longest ended first.
const FREE: &str = "SELECT id FROM payment_authorization INDEXED BY payment_authorization_claim \
     WHERE state = 'pending' AND claimed_until <= ?1 ORDER BY claimed_until, id LIMIT ?2";

/// One that may be claimed at `?2`.
const CLAIMABLE: &str = "u.id = ?1 AND u.state = 'pending' AND u.claimed_until <= ?2";

/// For how long an authorization that cannot be read is put off. It must not hold up the others.
const UNREADABLE: Duration = Duration::from_secs(60 * 60);

/// The row numbers of pending authorizations that nobody has claimed at `now`, at most `limit`.
pub(crate) fn free(connection: &Connection, now: Timestamp, limit: u32) -> Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(FREE).map_err(store_error)?;
    all(&mut statement, params![now.unix_millis(), limit], |row| row.get(0).map(Ok))
}

/// Claims those of these rows that are still free.
pub(crate) fn claim(
    connection: &Connection,
    rows: &[i64],
    now: Timestamp,
    lease: Duration,
) -> Result<Vec<AuthorizationRecord>> {
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        match rows::one(connection, CLAIMABLE, params![row, now.unix_millis()]) {
            Ok(Some((row, record))) => {
                set_claim(connection, row, now.saturating_add(lease))?;
                claimed.push(record);
            }
            Ok(None) => {}
            Err(StoreError::Corrupt(problem)) => {
                tracing::error!(row, problem, "an authorization cannot be read; it is put off for an hour");
                set_claim(connection, *row, now.saturating_add(UNREADABLE))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(claimed)
}

/// Claims a pending authorization until `until`, even if another process has claimed it.
pub(crate) fn extend(connection: &Connection, id: &AuthorizationId, until: Timestamp) -> Result<()> {
    match rows::pending(connection, id)? {
        Some((row, _)) => set_claim(connection, row, until),
        None => Ok(()),
    }
}

/// Claims an authorization until then.
pub(super) fn set_claim(connection: &Connection, row: i64, until: Timestamp) -> Result<()> {
    let sql = "UPDATE payment_authorization SET claimed_until = ?2 WHERE id = ?1";
    let values = params![row, until.unix_millis()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::migrations::migrate;
    use crate::offers::places;

    /// However many authorizations and places are kept.
    #[test]
    fn lists_and_lookups_use_an_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let free = "SEARCH payment_authorization USING COVERING INDEX payment_authorization_claim (claimed_until<?)";
        let mut queries =
            vec![(FREE.to_owned(), free), (rows::select(CLAIMABLE), "SEARCH u USING INTEGER PRIMARY KEY (rowid=?)")];
        queries.extend(rows::queries());
        queries.extend(places::queries());
        for (sql, expected) in queries {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = rusqlite::params_from_iter(vec![None::<i64>; statement.parameter_count()]);
            let steps = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<_> = steps.map(Result::unwrap).collect();
            assert_eq!(steps[0], expected, "{sql}: {steps:?}");
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE") || step.starts_with("SCAN")), "{steps:?}");
        }
    }

    /// However many were credited, and however many are claimed.
    #[test]
    fn a_look_reads_only_what_is_free() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let rows = "PRAGMA foreign_keys = off; \
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000) \
            INSERT INTO payment_authorization (chain_id, token, payer, nonce, recipient, amount, valid_after, \
              valid_before, signature, account, credits, received_at, claimed_until, state, tx_chain_id, tx_hash) \
            SELECT n, zeroblob(20), zeroblob(20), zeroblob(32), zeroblob(20), zeroblob(16), 0, 0, x'00', 1, 1, 0, n, \
              iif(n % 2, 'pending', 'credited'), iif(n % 2, NULL, n), iif(n % 2, NULL, zeroblob(32)) FROM n";
        connection.execute_batch(rows).unwrap();
        for (now, expected) in [(0, 0), (1, 1), (10, 5), (9_999, 8)] {
            assert_eq!(free(&connection, Timestamp::from_unix_millis(now), 8).unwrap().len(), expected, "at {now}");
            let mut statement = connection.prepare(FREE).unwrap();
            let found = statement.query_map(params![now, 8], |row| row.get::<_, i64>(0)).unwrap().count();
            let steps = statement.get_status(StatementStatus::VmStep);
            assert!(found == expected && steps < 120, "{found} at {now}, {steps} steps");
        }
    }
}
