//! The level of an account's balance alert.

use metering_core::money::AlertLevel;
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};

/// Writes the level of an account's alert. Returns whether it changed: then the journal must name the account.
pub(crate) fn write_level(connection: &Connection, row: i64, level: AlertLevel) -> Result<bool> {
    let sql = "UPDATE meter SET alert_raised = ?2 WHERE account = ?1 AND alert_raised <> ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    Ok(statement.execute(params![row, level.number()]).map_err(store_error)? > 0)
}
