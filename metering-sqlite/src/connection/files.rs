//! Detects that a file of an open database was deleted or replaced.
//!
//! Such a file keeps accepting writes, which are lost when its last handle is closed. There is no legitimate reason to
//! delete or replace a file while a connection is open: SQLite itself deletes the write-ahead log only when the last
//! connection closes, and checkpoints keep its inode.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use metering_core::StoreError;

use crate::error::Result;

/// The files that SQLite keeps next to an open database: its write-ahead log, and the index of the log.
const SIDECARS: [&str; 2] = ["-wal", "-shm"];

/// Identifies a file: device and inode.
type FileId = (u64, u64);

/// The files of one open database.
#[derive(Debug)]
pub(crate) struct Files {
    watched: Vec<(PathBuf, FileId)>,
    /// The problem with them. Set once and never cleared: a file that reappears is a different one.
    lost: OnceLock<String>,
}

impl Files {
    /// Records the identity of the files. The database must just have been read, so that all of them exist.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let unavailable = |error: std::io::Error| {
            StoreError::Unavailable(format!("cannot open database {}: {error}", path.display()).into())
        };
        // Paths are absolute, so that a change of directory does not matter. The given path may be a link. The link is
        // watched itself, since the next process opens it too; the sidecars are next to its target.
        let named = std::path::absolute(path).map_err(unavailable)?;
        let real = path.canonicalize().map_err(unavailable)?;
        let paths = std::iter::once(named).chain(SIDECARS.iter().map(|suffix| sidecar(&real, suffix)));
        let mut watched = Vec::new();
        for path in paths {
            // There is no index file in exclusive mode.
            if let Some(id) = file_id(&path).map_err(unavailable)? {
                watched.push((path, id));
            }
        }
        Ok(Self { watched, lost: OnceLock::new() })
    }

    /// Those of a database in memory.
    pub(crate) const fn none() -> Self {
        Self { watched: Vec::new(), lost: OnceLock::new() }
    }

    /// The problem with the files, if they are no longer those that were opened.
    pub(crate) fn loss(&self) -> Option<&str> {
        if let Some(lost) = self.lost.get() {
            return Some(lost);
        }
        let loss = self.watched.iter().find_map(|(path, opened)| match file_id(path) {
            Ok(None) => Some(format!("{} was deleted while the database was open", path.display())),
            Ok(Some(found)) if found != *opened => {
                Some(format!("{} was replaced while the database was open", path.display()))
            }
            // If the file is inaccessible, the next write reports why.
            Ok(Some(_)) | Err(_) => None,
        })?;
        let problem = format!(
            "{loss}; anything written since may be lost. Stop every process that uses this database, put its files \
             back or restore a backup, and start again"
        );
        Some(self.lost.get_or_init(|| {
            tracing::error!(problem, "the database files were deleted or replaced");
            problem
        }))
    }
}

/// The path of the database with a suffix.
pub(crate) fn sidecar(database: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The identity of the file at this path; `None` if there is none. Does not open the file: closing it again would drop
/// SQLite's locks.
#[cfg(unix)]
fn file_id(path: &Path) -> std::io::Result<Option<FileId>> {
    use std::os::unix::fs::MetadataExt;
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some((found.dev(), found.ino()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Other systems do not let an open file be deleted or replaced.
#[cfg(not(unix))]
fn file_id(_path: &Path) -> std::io::Result<Option<FileId>> {
    Ok(Some((0, 0)))
}
