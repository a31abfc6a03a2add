//! Limits on tokens of accounts, and the rows of tokens that were counted. Only holds that use tokens read them. They are
//! never cached, so that processes never count the same tokens apart.

use metering_core::charging::{TokenScope, Window};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::rows::first;

/// The limit of an account; 0 for none.
pub(crate) fn limit(connection: &Connection, account: i64) -> Result<u32> {
    let sql = "SELECT tokens_per_minute FROM meter WHERE account = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    Ok(first(&mut statement, [account], |row| row.get(0).map(Ok))?.unwrap_or_default())
}

/// The tokens counted for an account or a key; the default if there are none.
pub(crate) fn window(connection: &Connection, account: i64, scope: TokenScope) -> Result<Window> {
    let sql = "SELECT minute, tokens FROM token_window WHERE account = ?1 AND key = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let stored = first(&mut statement, [account, scope.number()], |row| {
        Ok(Ok(Window { index: row.get(0)?, count: row.get(1)? }))
    })?;
    Ok(stored.unwrap_or_default())
}

/// Writes the counts of a batch.
pub(crate) fn write(connection: &Connection, changes: &[(i64, TokenScope, Window)]) -> rusqlite::Result<()> {
    for (account, scope, window) in changes {
        let sql = "INSERT INTO token_window (account, key, minute, tokens) VALUES (?1, ?2, ?3, ?4) \
                   ON CONFLICT (account, key) DO UPDATE SET minute = excluded.minute, tokens = excluded.tokens";
        let values = params![account, scope.number(), window.index, window.count];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}
