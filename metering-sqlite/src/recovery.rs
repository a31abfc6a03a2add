//! What happens before a database is used that nobody closed in order.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;

use crate::connection::open_alone;
use crate::error::{Result, store_error};
use crate::files::sidecar;
use crate::integrity::{Depth, check_pages};

/// Checks the pages of a database that the last process did not close in order, so that damage is found before anybody
/// is charged on it.
///
/// The last connection that closes removes the write-ahead log. If there is one and nobody has the database open, that
/// did not happen.
pub(crate) fn check_after_crash(path: &Path) -> Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(sidecar(&real, "-wal")).map_or(0, |log| log.len()) == 0 {
        return Ok(());
    }
    // Nobody is waited for: whoever has it open has checked it.
    let Some(connection) = open_alone(path, Duration::ZERO)? else { return Ok(()) };
    tracing::warn!(path = %path.display(), "the database was not closed in order; checking it for damage");
    let checked = check_pages(&connection, Depth::Quick);
    if checked.is_err() {
        // The log stays, so that the next start checks again.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(store_error)?;
    }
    checked
}
