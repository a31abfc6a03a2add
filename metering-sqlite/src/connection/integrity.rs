//! Checks the file itself: its pages, its indexes, and that every account has the key it should have.
//!
//! Adding up the books reads only a few tables. Damage anywhere else would go unnoticed until that data is needed.

use metering_core::StoreError;
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

/// Accounts without the key they should have: one that is live, unless the account is revoked. Each key is looked up
/// through both of its trees, as a charge and a revocation do.
///
/// The accounts of all keys are read once into a list. No index has those of revoked keys, so looking for each account's
/// keys would read all keys for each account: minutes at 100,000.
const WITHOUT_KEY: &str = "
    SELECT count(*) FROM account a
    WHERE a.id NOT IN (SELECT account FROM api_key)
       OR (a.revoked_at IS NULL) <> EXISTS (
         SELECT 1 FROM api_key k INDEXED BY api_key_live WHERE k.account = a.id AND k.revoked_at IS NULL
           AND EXISTS (SELECT 1 FROM api_key found WHERE found.hash = k.hash AND found.account = a.id))";

/// Keys that belong to no account.
const WITHOUT_ACCOUNT: &str = "SELECT count(*) FROM api_key WHERE account NOT IN (SELECT id FROM account)";

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
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(store_error);
    match (count(WITHOUT_KEY)?, count(WITHOUT_ACCOUNT)?) {
        (0, 0) => Ok(()),
        (0, keys) => Err(corrupt(format_args!("{keys} keys belong to no account"))),
        (accounts, _) => Err(corrupt(format_args!("{accounts} accounts do not have the key they should have"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::migrate;

    #[test]
    fn no_table_is_read_for_each_account() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {WITHOUT_KEY}")).unwrap();
        // id, parent, detail
        let step = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(3)?));
        let steps: Vec<(i64, i64, String)> = statement.query_map([], step).unwrap().map(Result::unwrap).collect();
        let for_each_account =
            |id: i64| steps.iter().any(|(own, _, detail)| *own == id && detail.starts_with("CORRELATED"));
        assert!(steps.iter().any(|(id, ..)| for_each_account(*id)), "{steps:?}");
        for (_, parent, detail) in &steps {
            assert!(!(detail.starts_with("SCAN") && for_each_account(*parent)), "{steps:?}");
        }
    }
}
