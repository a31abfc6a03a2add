//! A copy of the database, taken while it is in use.

use std::path::Path;
use std::time::Duration;

use metering_core::StoreError;
use rusqlite::Connection;
use rusqlite::backup::Backup;

use crate::connection::prepare_file;
use crate::error::{Result, store_error};

/// Pages per step; 16 MiB are copied in a few milliseconds.
const PAGES_PER_STEP: i32 = 4_096;
/// Only paused for when the source is locked for a moment.
const PAUSE: Duration = Duration::from_millis(1);

/// Copies one snapshot of `source` to a new file, which is a whole database of its own.
///
/// The caller's read transaction holds the snapshot still: without it each commit by another process would start
/// the copy over.
pub(crate) fn copy(source: &Connection, path: &Path) -> Result<()> {
    if path.exists() {
        let problem = format!("{} exists already; choose a new file", path.display());
        return Err(StoreError::Unavailable(problem.into()));
    }
    // The first read takes the snapshot.
    source.query_row("SELECT count(*) FROM account", [], |_| Ok(())).map_err(store_error)?;
    prepare_file(path)?;
    let mut target = Connection::open(path).map_err(store_error)?;
    let backup = Backup::new(source, &mut target).map_err(store_error)?;
    backup.run_to_completion(PAGES_PER_STEP, PAUSE, None).map_err(store_error)
}
