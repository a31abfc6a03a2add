//! Files that only their owner can access, replaced atomically: a reader sees the last write or the one before, even
//! after a power cut.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::Builder;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::new_file::{directory_of, sync_directory};

/// A partial file older than this is abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(10 * 60);

/// The content, or `None` if the file does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Zeroizing<String>>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(Zeroizing::new(text))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::Failed(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Replaces the content, with mode 0600, and returns once it is on disk. Creates missing directories with mode 0700.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot write {}: {error}", path.display()));
    let directory = directory_of(path);
    make_directory(directory)?;
    let mut prefix = path.file_name().unwrap_or_default().to_owned();
    prefix.push(".");
    remove_abandoned(directory, &prefix);
    let written = Builder::new().prefix(&prefix).suffix(".partial").tempfile_in(directory).and_then(|mut file| {
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        sync_directory(directory)
    });
    written.map_err(failed)
}

/// Removes the file if it exists, and returns once that is on disk.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot remove {}: {error}", path.display()));
    match fs::remove_file(path) {
        Ok(()) => sync_directory(directory_of(path)).map_err(failed),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Creates a directory that only its owner can access, and those above it.
pub(crate) fn make_directory(directory: &Path) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let failed = |error| Failure::Failed(format!("cannot create the directory {}: {error}", directory.display()));
    builder.create(directory).map_err(failed)
}

/// A lock that one process at a time can hold. Released when dropped, and when the process ends for any reason.
#[derive(Debug)]
pub(crate) struct FileLock(#[expect(dead_code, reason = "held, not read: the open file holds the lock")] File);

impl FileLock {
    /// Takes the lock.
    ///
    /// # Errors
    /// [`Failure::Conflict`] when another process has it; `doing` describes the work of that process.
    pub(crate) fn acquire(path: PathBuf, doing: &str) -> Result<Self, Failure> {
        if let Some(directory) = path.parent() {
            make_directory(directory)?;
        }
        let failed = |error: std::io::Error| Failure::Failed(format!("cannot lock {}: {error}", path.display()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => {
                Err(Failure::Conflict(format!("another process is {doing} using this profile; wait for it to finish")))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Removes partial files that killed processes left behind. A live process takes only an instant to write one.
fn remove_abandoned(directory: &Path, prefix: &OsStr) {
    let Some(prefix) = prefix.to_str() else { return };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let partial = entry.file_name();
        let rest = partial.to_str().and_then(|partial| partial.strip_prefix(prefix)?.strip_suffix(".partial"));
        let is_old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok().map(|age| age > ABANDONED_AFTER);
        if rest.is_some() && is_old() == Some(true) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_atomically_and_readable_by_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/profile.toml");
        assert!(read(&path).unwrap().is_none());
        write(&path, b"first").unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(read(&path).unwrap().unwrap().as_str(), "second");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no partial file stays");
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(read(&path).unwrap().is_none());
    }

    #[test]
    fn files_of_killed_processes_are_removed_later() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        for name in ["cursor.json.1.partial", "cursor.json.2.partial", "other.json.1.partial"] {
            fs::write(file(name), "").unwrap();
        }
        let old = fs::metadata(directory.path()).unwrap().modified().unwrap() - ABANDONED_AFTER * 2;
        for name in ["cursor.json.1.partial", "other.json.1.partial"] {
            File::options().write(true).open(file(name)).unwrap().set_modified(old).unwrap();
        }
        write(&file("cursor.json"), b"1").unwrap();
        let mut left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["cursor.json", "cursor.json.2.partial", "other.json.1.partial"]);
    }

    #[test]
    fn one_process_at_a_time_has_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile/lock");
        let lock = FileLock::acquire(path.clone(), "paying").unwrap();
        let refused = FileLock::acquire(path.clone(), "paying").unwrap_err();
        assert!(refused.to_string().contains("is paying"), "{refused}");
        drop(lock);
        FileLock::acquire(path, "paying").unwrap();
    }
}
