//! Writes files that appear under their name only when they are complete.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::failure::Failure;

/// The user id of root.
#[cfg(unix)]
const ROOT: u32 = 0;

/// Who a new file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Who ran the command, and is not root.
    Maker,
    /// The owner of its folder, although root ran the command.
    #[cfg_attr(not(unix), allow(dead_code, reason = "nobody is root there"))]
    Folder,
    /// Root, who ran the command and whose folder it is in.
    #[cfg_attr(not(unix), allow(dead_code, reason = "nobody is root there"))]
    Root,
}

impl Owner {
    /// A sentence for whoever ran the command as root, after a space.
    pub(crate) const fn note(self) -> &'static str {
        match self {
            Self::Maker => "",
            Self::Folder => " It belongs to the owner of its folder.",
            Self::Root => {
                " It belongs to root, as its folder does: a server of another user can read it only as a credential."
            }
        }
    }
}

/// A file being written, in the same directory as its target. Dropping it unfinished removes it.
#[derive(Debug)]
pub(crate) struct NewFile {
    target: PathBuf,
    partial: NamedTempFile,
    replace: bool,
}

impl NewFile {
    /// Creates an empty file next to `target`, readable by its owner only: exports contain email addresses.
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
        refuse_special(target)?;
        if !replace && target.symlink_metadata().is_ok() {
            return Err(exists(target));
        }
        let prefix = format!(".{}.", name.display());
        let partial = Builder::new().prefix(&prefix).suffix(".partial").tempfile_in(directory_of(target));
        let partial = partial.map_err(|error| cannot_write(target, &error))?;
        Ok(Self { target: target.to_owned(), partial, replace })
    }

    /// Like [`Self::next_to`], for a writer that creates the file itself, at [`Self::partial`].
    pub(crate) fn absent_next_to(target: &Path, replace: bool) -> Result<Self, Failure> {
        let file = Self::next_to(target, replace)?;
        fs::remove_file(file.partial()).map_err(|error| file.cannot_write(&error))?;
        Ok(file)
    }

    /// The temporary path until the file is finished.
    pub(crate) fn partial(&self) -> &Path {
        self.partial.path()
    }

    /// If root made the file, gives it the owner and group of its folder, so that a server that runs as another user can
    /// read it.
    #[cfg(unix)]
    pub(crate) fn give_to_folder(&self) -> Result<Owner, Failure> {
        use std::os::unix::fs::{MetadataExt, fchown};
        let (file, folder) = (self.partial.as_file(), directory_of(&self.target));
        let failed = |error: io::Error| {
            let advice = "run the command as that user";
            Failure::Failed(format!("cannot give {} the owner of its folder: {error}; {advice}", self.target.display()))
        };
        if file.metadata().map_err(failed)?.uid() != ROOT {
            return Ok(Owner::Maker);
        }
        let folder = fs::metadata(folder).map_err(failed)?;
        if folder.uid() == ROOT {
            return Ok(Owner::Root);
        }
        // Not by its path, where the folder's owner could have put a link to any other file.
        fchown(file, Some(folder.uid()), Some(folder.gid())).map_err(failed)?;
        Ok(Owner::Folder)
    }

    #[cfg(not(unix))]
    pub(crate) fn give_to_folder(&self) -> Result<Owner, Failure> {
        Ok(Owner::Maker)
    }

    /// Gives the file the owner, group and mode of the one that it replaces.
    #[cfg(unix)]
    pub(crate) fn keep_access(&self, before: &fs::Metadata) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, fchown};
        let file = self.partial.as_file();
        fchown(file, Some(before.uid()), Some(before.gid()))?;
        file.set_permissions(before.permissions())
    }

    #[cfg(not(unix))]
    pub(crate) fn keep_access(&self, _: &fs::Metadata) -> io::Result<()> {
        Ok(())
    }

    /// The failure to report when writing fails.
    pub(crate) fn cannot_write(&self, error: &io::Error) -> Failure {
        cannot_write(&self.target, error)
    }

    /// Syncs the file to disk, then gives it its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Self { target, partial, replace } = self;
        let failed = |error: io::Error| cannot_write(&target, &error);
        // By its name, since the writer may have created it itself.
        File::open(partial.path()).and_then(|file| file.sync_all()).map_err(failed)?;
        let partial = partial.into_temp_path();
        if replace {
            partial.persist(&target).map_err(|error| failed(error.error))?;
        } else if let Err(refused) = partial.persist_noclobber(&target) {
            if refused.error.kind() == ErrorKind::AlreadyExists || target.symlink_metadata().is_ok() {
                return Err(exists(&target));
            }
            // The file system can neither rename without replacing nor make hard links.
            refused.path.persist(&target).map_err(|error| failed(error.error))?;
        }
        sync_directory(directory_of(&target)).map_err(failed)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.partial.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.partial.flush()
    }
}

/// Refuses to replace a device or a pipe, such as `/dev/null`, by a file.
///
/// # Errors
/// When `target` exists and is no file.
pub(crate) fn refuse_special(target: &Path) -> Result<(), Failure> {
    match target.metadata() {
        Ok(metadata) if !metadata.is_file() => {
            Err(Failure::Conflict(format!("{} is not a regular file; name one", target.display())))
        }
        _ => Ok(()),
    }
}

/// The directory that a file is in.
pub(crate) fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    // Other platforms cannot open directories.
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

fn cannot_write(target: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", target.display()))
}

fn exists(target: &Path) -> Failure {
    Failure::Conflict(format!("{} exists; choose another name, or add --force to replace it", target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_appears_only_when_finished() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export.csv");
        let names = || fs::read_dir(directory.path()).unwrap().count();
        let mut file = NewFile::next_to(&target, false).unwrap();
        file.write_all(b"rows").unwrap();
        assert!(!target.exists());
        drop(file);
        assert_eq!(names(), 0, "an unfinished file leaves nothing behind");
        let mut file = NewFile::next_to(&target, false).unwrap();
        file.write_all(b"rows").unwrap();
        file.finish().unwrap();
        assert_eq!((fs::read_to_string(&target).unwrap().as_str(), names()), ("rows", 1));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn existing_file_is_replaced_only_with_force() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export.csv");
        fs::write(&target, "old").unwrap();
        assert!(matches!(NewFile::next_to(&target, false), Err(Failure::Conflict(_))));
        let file = NewFile::absent_next_to(&target, true).unwrap();
        assert!(!file.partial().exists());
        fs::write(file.partial(), "new").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_not_replaced_even_with_force() {
        let refused = NewFile::next_to(Path::new("/dev/null"), true).unwrap_err().to_string();
        assert!(refused.contains("not a regular file"), "{refused}");
    }

    #[test]
    fn file_created_meanwhile_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("export.csv");
        let file = NewFile::next_to(&target, false).unwrap();
        fs::write(&target, "theirs").unwrap();
        assert!(matches!(file.finish(), Err(Failure::Conflict(_))));
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "the unfinished file is removed");
    }
}
