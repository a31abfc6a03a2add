//! Checks the file itself: its pages, its indexes, that every account has the key it should have, and that every hold has
//! its key.
//!
//! Adding up the books reads only a few tables. Damage anywhere else would go unnoticed until that data is needed.

use metering_core::StoreError;
use metering_sql::verify::{Check, HOLD_WITHOUT_KEY, WITHOUT_KEY};
use rusqlite::Connection;

use crate::error::{Result, corrupt, store_error};

/// Maximum number of problems that SQLite lists. The first one shows where to look.
const MAX_PROBLEMS: u32 = 100;

/// How thorough the page check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Every page, without comparing indexes with their tables. Takes about as long as reading the file.
    Quick,
    /// Every page, and that each index has exactly the rows of its table.
    Full,
}

/// Keys without the secret they should have: one that is not revoked, unless the key is revoked or leaked, or its account
/// revoked. Each secret is looked up through both of its trees, as a charge and a rotation do.
///
/// The keys of all secrets are read once into a list. No single index has those of all secrets, so looking for each key's
/// secrets would read all secrets for each key: minutes at 100,000.
const WITHOUT_SECRET: &str = "
    SELECT count(*) FROM api_key k CROSS JOIN account a ON a.id = k.account
    WHERE (k.account, k.number) NOT IN (SELECT account, key FROM key_secret)
       OR (a.revoked_at IS NULL AND k.revoked_at IS NULL AND k.leaked_at IS NULL) <> EXISTS (
         SELECT 1 FROM key_secret s INDEXED BY key_secret_live
         WHERE s.account = k.account AND s.key = k.number AND s.revoked_at IS NULL
           AND EXISTS (SELECT 1 FROM key_secret found
             WHERE found.hash = s.hash AND found.account = k.account AND found.key = k.number))";

/// Keys that belong to no account, or whose parent does not exist.
const WITHOUT_ACCOUNT: &str = "
    SELECT count(*) FROM api_key k
    WHERE k.account NOT IN (SELECT id FROM account)
       OR k.parent IS NOT NULL AND NOT EXISTS (
         SELECT 1 FROM api_key p WHERE p.account = k.account AND p.number = k.parent AND p.number < k.number)";

/// Secrets that belong to no key.
const SECRET_WITHOUT_KEY: &str = "
    SELECT count(*) FROM key_secret s
    WHERE NOT EXISTS (SELECT 1 FROM api_key k WHERE k.account = s.account AND k.number = s.key)";

/// Keys with a budget or rate limits and without a meter, keys with a meter for nothing, and meters of no key.
const MISCOUNTED: &str = "
    SELECT (SELECT count(*) FROM api_key k
        WHERE (k.budget_limit IS NOT NULL OR k.requests_per_minute <> 0 OR k.requests_per_day <> 0) <> EXISTS (
          SELECT 1 FROM key_meter m WHERE m.account = k.account AND m.key = k.number))
      + (SELECT count(*) FROM key_meter m
        WHERE NOT EXISTS (SELECT 1 FROM api_key k WHERE k.account = m.account AND k.number = m.key))";

/// Each check of the keys and the rows that belong to them: a query that counts the wrong rows, and the description of
/// the error.
const KEY_CHECKS: [Check; 6] = [
    WITHOUT_KEY,
    (WITHOUT_ACCOUNT, "keys belong to no account or to no parent"),
    (SECRET_WITHOUT_KEY, "secrets belong to no key"),
    (WITHOUT_SECRET, "keys do not have the secret they should have"),
    (MISCOUNTED, "keys without a meter, or meters without a key"),
    HOLD_WITHOUT_KEY,
];

/// Checks the file and the keys.
pub(crate) fn check(connection: &Connection, depth: Depth) -> Result<()> {
    check_pages(connection, depth)?;
    check_keys(connection)
}

/// Checks the pages of the file.
pub(crate) fn check_pages(connection: &Connection, depth: Depth) -> Result<()> {
    let pragma = match depth {
        Depth::Quick => "quick_check",
        Depth::Full => "integrity_check",
    };
    let list = || {
        let mut statement = connection.prepare(&format!("PRAGMA {pragma}({MAX_PROBLEMS})"))?;
        statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()
    };
    let damaged = |what: &str| corrupt(format_args!("the database file is damaged (PRAGMA {pragma}: {what})"));
    match list().map_err(store_error) {
        Ok(problems) if problems == ["ok"] => Ok(()),
        Ok(problems) => {
            let first = problems.first().map_or("", |first| first.trim());
            Err(damaged(&format!("{} problems; first: {first}", problems.len())))
        }
        // Some damage keeps SQLite from even listing it.
        Err(StoreError::Corrupt(problem)) => Err(damaged(&problem)),
        Err(other) => Err(other),
    }
}

/// Checks that every key resolves.
fn check_keys(connection: &Connection) -> Result<()> {
    for (sql, problem) in KEY_CHECKS {
        let count: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(store_error)?;
        if count > 0 {
            return Err(corrupt(format_args!("{count} {problem}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::migrate;

    #[test]
    fn no_table_is_read_for_each_row_of_another() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        for (sql, problem) in KEY_CHECKS {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            // id, parent, detail
            let step = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(3)?));
            let steps: Vec<(i64, i64, String)> = statement.query_map([], step).unwrap().map(Result::unwrap).collect();
            let for_each_row =
                |id: i64| steps.iter().any(|(own, _, detail)| *own == id && detail.starts_with("CORRELATED"));
            assert!(steps.iter().any(|(id, ..)| for_each_row(*id)), "{problem}: {steps:?}");
            for (_, parent, detail) in &steps {
                assert!(!(detail.starts_with("SCAN") && for_each_row(*parent)), "{problem}: {steps:?}");
            }
        }
    }
}
