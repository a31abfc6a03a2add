//! Writes files that appear under their name only when they are complete.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file being written, in the same directory as its target. Dropping it unfinished removes it.
#[derive(Debug)]
pub(crate) struct NewFile {
    target: PathBuf,
    partial: PathBuf,
    replace: bool,
}

impl NewFile {
    /// Chooses a temporary name next to `target`; writes nothing yet.
    ///
    /// # Errors
    /// When the target exists and `replace` is not set.
    pub(crate) fn next_to(target: &Path, replace: bool) -> Result<Self, Failure> {
        let Some(name) = target.file_name() else {
            return Err(Failure::Usage(format!("{} is not the name of a file", target.display())));
        };
        if target.is_dir() {
            return Err(Failure::Conflict(format!("{} is a directory; name a file in it", target.display())));
        }
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.partial", std::process::id()));
        let file = Self { target: target.to_owned(), partial: target.with_file_name(hidden), replace };
        if !replace && target.symlink_metadata().is_ok() {
            return Err(file.exists());
        }
        Ok(file)
    }

    /// Creates the file, readable by its owner only: exports contain email addresses.
    pub(crate) fn create(&self) -> Result<File, Failure> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.partial).map_err(|error| self.cannot_write(&error))
    }

    /// Where the file is until it is finished.
    pub(crate) fn partial(&self) -> &Path {
        &self.partial
    }

    /// The failure to report when writing fails.
    pub(crate) fn cannot_write(&self, error: &io::Error) -> Failure {
        Failure::Failed(format!("cannot write {}: {error}", self.target.display()))
    }

    /// Syncs the file to disk, then gives it its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        File::open(&self.partial).and_then(|file| file.sync_all()).map_err(|error| self.cannot_write(&error))?;
        if self.replace {
            fs::rename(&self.partial, &self.target).map_err(|error| self.cannot_write(&error))?;
        } else {
            self.claim_name()?;
        }
        // The name is durable once its directory is synced.
        let directory = self.target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if cfg!(unix) {
            File::open(directory).and_then(|file| file.sync_all()).map_err(|error| self.cannot_write(&error))?;
        }
        Ok(())
    }

    /// Takes the name only if it is free: a hard link fails if the name exists, where a rename would replace it.
    fn claim_name(&self) -> Result<(), Failure> {
        match fs::hard_link(&self.partial, &self.target) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(self.exists()),
            Err(_) if self.target.symlink_metadata().is_ok() => Err(self.exists()),
            // The file system does not support hard links.
            Err(_) => fs::rename(&self.partial, &self.target).map_err(|error| self.cannot_write(&error)),
        }
    }

    fn exists(&self) -> Failure {
        Failure::Conflict(format!(
            "{} exists; choose another name, or add --force to replace it",
            self.target.display()
        ))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After `finish` it is already gone, or is the second link to the target.
        let _ = fs::remove_file(&self.partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn file_appears_only_when_finished() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export.csv");
        let names = || fs::read_dir(directory.path()).unwrap().count();
        let file = NewFile::next_to(&target, false).unwrap();
        file.create().unwrap().write_all(b"rows").unwrap();
        assert!(!target.exists());
        drop(file);
        assert_eq!(names(), 0, "an unfinished file leaves nothing behind");
        let file = NewFile::next_to(&target, false).unwrap();
        fs::write(file.partial(), "rows").unwrap();
        file.finish().unwrap();
        assert_eq!((fs::read_to_string(&target).unwrap().as_str(), names()), ("rows", 1));
    }

    #[test]
    fn existing_file_is_replaced_only_with_force() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export.csv");
        fs::write(&target, "old").unwrap();
        assert!(matches!(NewFile::next_to(&target, false), Err(Failure::Conflict(_))));
        let file = NewFile::next_to(&target, true).unwrap();
        fs::write(file.partial(), "new").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }

    #[test]
    fn file_created_meanwhile_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export.csv");
        let file = NewFile::next_to(&target, false).unwrap();
        file.create().unwrap();
        fs::write(&target, "theirs").unwrap();
        assert!(matches!(file.finish(), Err(Failure::Conflict(_))));
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
    }
}
