//! The files of an open database, and whether they are still those that were opened.
//!
//! A file that is deleted or replaced under an open connection goes on taking writes, which are lost with the last
//! handle on it. While a connection is open, nobody has a legitimate reason to do that: SQLite itself deletes the
//! write-ahead log only when the last connection closes, and checkpoints keep its inode.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use metering_core::StoreError;

use crate::error::Result;

/// The files that SQLite keeps beside an open database: its write-ahead log, and the index of that.
const SIDECARS: [&str; 2] = ["-wal", "-shm"];

/// Which file has a name: device and inode.
type FileId = (u64, u64);

/// The files of one open database.
#[derive(Debug)]
pub(crate) struct Files {
    watched: Vec<(PathBuf, FileId)>,
    /// What happened to them, for good: a file that comes back is another one.
    lost: OnceLock<String>,
}

impl Files {
    /// Remembers the files of a database that was just read, so that all of them are there.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let unavailable = |error: std::io::Error| {
            StoreError::Unavailable(format!("cannot open database {}: {error}", path.display()).into())
        };
        // Absolute, so that they are the same after a change of directory. The name that was given is watched itself,
        // since it may be a link, and that is where the next process looks; the sidecars are beside what it leads to.
        let named = std::path::absolute(path).map_err(unavailable)?;
        let real = path.canonicalize().map_err(unavailable)?;
        let paths = std::iter::once(named).chain(SIDECARS.iter().map(|suffix| sidecar(&real, suffix)));
        let mut watched = Vec::new();
        for path in paths {
            // There is no index where a process has the database for itself.
            if let Some(id) = file_id(&path).map_err(unavailable)? {
                watched.push((path, id));
            }
        }
        Ok(Self { watched, lost: OnceLock::new() })
    }

    /// What happened to the files, if they are no longer those that were opened.
    pub(crate) fn loss(&self) -> Option<&str> {
        if let Some(lost) = self.lost.get() {
            return Some(lost);
        }
        let loss = self.watched.iter().find_map(|(path, opened)| match file_id(path) {
            Ok(None) => Some(format!("{} was deleted while the database was open", path.display())),
            Ok(Some(found)) if found != *opened => {
                Some(format!("{} was replaced while the database was open", path.display()))
            }
            // Whoever writes to it learns what is wrong.
            Ok(Some(_)) | Err(_) => None,
        })?;
        let problem = format!(
            "{loss}; what was written since may be lost. Stop every process that uses this database, see that its files \
             are in place or restore a backup, and start again"
        );
        Some(self.lost.get_or_init(|| {
            tracing::error!(problem, "the database is gone");
            problem
        }))
    }
}

/// A file beside a database.
pub(crate) fn sidecar(database: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Which file has that name; `None` when there is none. It is not opened: closing it again would drop SQLite's locks.
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
