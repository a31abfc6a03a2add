//! How far each chain has been scanned for payments.

use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::rows::first;

/// The last scanned block of a chain, if any.
pub(crate) fn of_chain(connection: &Connection, chain_id: u64) -> Result<Option<u64>> {
    let sql = "SELECT block FROM scan_mark WHERE chain_id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    first(&mut statement, [chain_id.cast_signed()], |row| row.get(0).map(i64::cast_unsigned).map(Ok))
}

/// Advances the mark of a chain, and never moves it back. Compares here, because SQLite's integers are signed.
pub(crate) fn advance(connection: &Connection, chain_id: u64, block: u64) -> Result<()> {
    if of_chain(connection, chain_id)?.is_some_and(|mark| mark >= block) {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO scan_mark (chain_id, block) VALUES (?1, ?2)";
    let values = params![chain_id.cast_signed(), block.cast_signed()];
    connection.execute(sql, values).map(drop).map_err(store_error)
}
