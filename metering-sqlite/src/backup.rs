//! A copy of the database while it is in use, which gets its name only once it was verified.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metering_core::{StoreError, Verification};
use rusqlite::Connection;
use rusqlite::backup::Backup;

use crate::connection::prepare_file;
use crate::error::{Result, store_error};
use crate::files::sidecar;
use crate::verify::verify;

/// Pages per step; 16 MiB are copied in a few milliseconds.
const PAGES_PER_STEP: i32 = 4_096;
/// Only paused for when the source is locked for a moment.
const PAUSE: Duration = Duration::from_millis(1);

/// Copies one snapshot of `source` to a new file, which is a whole database of its own, and verifies it.
///
/// The caller's read transaction holds the snapshot still: without it each commit by another process would start
/// the copy over.
pub(crate) fn copy(source: &Connection, path: &Path) -> Result<Verification> {
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    // The first read takes the snapshot.
    source.query_row("SELECT count(*) FROM account", [], |_| Ok(())).map_err(store_error)?;
    let partial = Partial::beside(path);
    prepare_file(&partial.path)?;
    copy_pages(source, &partial.path)?;
    let found = verify_copy(&partial.path).map_err(|error| match error {
        StoreError::Corrupt(problem) => {
            StoreError::Corrupt(format!("{problem} (in the copy, as in the database; no backup was made)"))
        }
        other => other,
    })?;
    partial.take_name(path)?;
    Ok(found)
}

fn copy_pages(source: &Connection, path: &Path) -> Result<()> {
    let mut target = Connection::open(path).map_err(store_error)?;
    let backup = Backup::new(source, &mut target).map_err(store_error)?;
    backup.run_to_completion(PAGES_PER_STEP, PAUSE, None).map_err(store_error)
}

/// With a connection of its own, which reads what is in the file.
fn verify_copy(path: &Path) -> Result<Verification> {
    let mut copy = Connection::open(path).map_err(store_error)?;
    let snapshot = copy.transaction().map_err(store_error)?;
    verify(&snapshot)
}

fn exists(path: &Path) -> StoreError {
    StoreError::Unavailable(format!("{} exists already; choose a new file", path.display()).into())
}

/// A copy that has no name yet. Dropped, it leaves nothing behind.
struct Partial {
    path: PathBuf,
}

impl Partial {
    fn beside(target: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { path: sidecar(target, &format!(".{}-{number}.partial", std::process::id())) }
    }

    /// Gives the copy its name once all of it is on disk, and only if nobody else took the name meanwhile.
    fn take_name(&self, target: &Path) -> Result<()> {
        let unavailable = |error: std::io::Error| {
            StoreError::Unavailable(format!("cannot write {}: {error}", target.display()).into())
        };
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(unavailable)?;
        match fs::hard_link(&self.path, target) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(target)),
            // A file system without links.
            Err(_) if target.symlink_metadata().is_ok() => return Err(exists(target)),
            Err(_) => fs::rename(&self.path, target).map_err(unavailable)?,
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if cfg!(unix) {
            // The name is on disk once its folder is.
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(unavailable)?;
        }
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(sidecar(&self.path, suffix));
        }
    }
}
