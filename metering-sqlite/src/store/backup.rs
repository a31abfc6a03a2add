//! Online backup: copies the database while it is in use. The copy gets its final name only after it has been verified.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use metering_core::StoreError;
use metering_core::store::{Progress, Verification};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::connection::files::sidecar;
use crate::connection::prepare_file;
use crate::error::{Result, store_error};
use crate::store::verify::verify;

/// Pages per step: 16 MiB, copied in a few milliseconds.
const PAGES_PER_STEP: i32 = 4_096;
/// How long to pause after each step, and before retrying a step that found the source locked.
const PAUSE: Duration = Duration::from_millis(1);

/// Copies one snapshot of `source` to a new, complete database file and verifies the copy.
///
/// The caller must hold a read transaction, which pins the snapshot. Without it, every commit by another process would
/// restart the copy.
pub(crate) fn copy(source: &Connection, path: &Path, progress: &dyn Progress) -> Result<Verification> {
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    // The first read takes the snapshot.
    source.query_row("SELECT count(*) FROM account", [], |_| Ok(())).map_err(store_error)?;
    let partial = Partial::next_to(path);
    prepare_file(&partial.path)?;
    copy_pages(source, &partial.path, progress)?;
    let found = verify_copy(&partial.path).map_err(|error| match error {
        StoreError::Corrupt(problem) => {
            StoreError::Corrupt(format!("{problem} (in the copy, and so in the database too; no backup was made)"))
        }
        other => other,
    })?;
    partial.take_name(path)?;
    Ok(found)
}

/// Copies all pages. Progress is in bytes.
fn copy_pages(source: &Connection, path: &Path, progress: &dyn Progress) -> Result<()> {
    let page_size: i64 = source.query_row("PRAGMA page_size", [], |row| row.get(0)).map_err(store_error)?;
    let bytes = |pages: i32| u64::try_from(page_size.saturating_mul(pages.into())).unwrap_or(0);
    let mut target = Connection::open(path).map_err(store_error)?;
    let backup = Backup::new(source, &mut target).map_err(store_error)?;
    let mut copied = 0;
    loop {
        let step = backup.step(PAGES_PER_STEP).map_err(store_error)?;
        let found = backup.progress();
        if copied == 0 {
            progress.total(bytes(found.pagecount));
        }
        let now = found.pagecount - found.remaining;
        progress.advance(bytes(now - copied));
        copied = now;
        match step {
            StepResult::Done => return Ok(()),
            _ => thread::sleep(PAUSE),
        }
    }
}

/// Opens a new connection, so that everything is read from the file.
fn verify_copy(path: &Path) -> Result<Verification> {
    let mut copy = Connection::open(path).map_err(store_error)?;
    let snapshot = copy.transaction().map_err(store_error)?;
    verify(&snapshot)
}

fn exists(path: &Path) -> StoreError {
    StoreError::Unavailable(format!("{} already exists; choose a new file", path.display()).into())
}

/// An unfinished copy under a temporary name. Dropping it deletes the file.
struct Partial {
    path: PathBuf,
}

impl Partial {
    fn next_to(target: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { path: sidecar(target, &format!(".{}-{number}.partial", std::process::id())) }
    }

    /// Flushes the copy to disk and gives it its final name, unless a file with that name has appeared in the meantime.
    fn take_name(&self, target: &Path) -> Result<()> {
        let unavailable = |error: std::io::Error| {
            StoreError::Unavailable(format!("cannot write {}: {error}", target.display()).into())
        };
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(unavailable)?;
        match fs::hard_link(&self.path, target) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(target)),
            // The file system has no hard links.
            Err(_) if target.symlink_metadata().is_ok() => return Err(exists(target)),
            Err(_) => fs::rename(&self.path, target).map_err(unavailable)?,
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if cfg!(unix) {
            // Flush the folder, or the new name may be lost.
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
