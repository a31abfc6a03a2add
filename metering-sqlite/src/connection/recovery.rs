//! Checks a database for damage if the last process did not close it cleanly.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;

use crate::connection::files::sidecar;
use crate::connection::integrity::{Depth, check_pages};
use crate::connection::open_alone;
use crate::connection::unchecked::Mark;
use crate::error::{Result, store_error};

/// A check reads the whole file. A larger one is checked while it is in use, so that charges need not wait for that: with
/// a million accounts, it takes many seconds.
const LARGE_BYTES: u64 = 64 * 1024 * 1024;

/// When to check a database that was not closed cleanly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before it is opened.
    Now,
    /// A large one after it was opened.
    LargeOnesLater,
}

/// Checks the pages of a database that was not closed cleanly, so that damage is found before anything is charged.
///
/// The last connection to close removes the write-ahead log. If there is a log and no process has the database open,
/// the last process crashed. Returns the mark of a database that is still to be checked.
pub(crate) fn check_after_crash(path: &Path, when: When) -> Result<Option<Mark>> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mark = Mark::of(&real);
    if bytes(&sidecar(&real, "-wal")) == 0 && !mark.exists() {
        return Ok(None);
    }
    // Do not wait: if another process has the database open, it has already checked it, or does so.
    let Some(connection) = open_alone(path, Duration::ZERO)? else { return Ok(None) };
    if when == When::LargeOnesLater && bytes(&real) > LARGE_BYTES && !mark.says_damaged() {
        tracing::warn!(
            path = %path.display(),
            "the database was not closed cleanly; checking it for damage while it is in use"
        );
        // Closing the connection removes the log.
        mark.set()?;
        return Ok(Some(mark));
    }
    tracing::warn!(path = %path.display(), "the database was not closed cleanly; checking it for damage");
    let checked = check_pages(&connection, Depth::Quick);
    if checked.is_ok() {
        mark.remove()?;
    } else {
        // Keep the log, so that the next start checks again.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(store_error)?;
    }
    checked.map(|()| None)
}

fn bytes(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |file| file.len())
}
