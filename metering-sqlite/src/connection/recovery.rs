//! Checks a database for damage if the last process did not close it cleanly.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;

use crate::connection::files::sidecar;
use crate::connection::integrity::{Depth, check_pages};
use crate::connection::open_alone;
use crate::error::{Result, store_error};

/// Checks the pages of a database that was not closed cleanly, so that damage is found before anything is charged.
///
/// The last connection to close removes the write-ahead log. If there is a log and no process has the database open,
/// the last process crashed.
pub(crate) fn check_after_crash(path: &Path) -> Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(sidecar(&real, "-wal")).map_or(0, |log| log.len()) == 0 {
        return Ok(());
    }
    // Do not wait: if another process has the database open, it has already checked it.
    let Some(connection) = open_alone(path, Duration::ZERO)? else { return Ok(()) };
    tracing::warn!(path = %path.display(), "the database was not closed cleanly; checking it for damage");
    let checked = check_pages(&connection, Depth::Quick);
    if checked.is_err() {
        // Keep the log, so that the next start checks again.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(store_error)?;
    }
    checked
}
