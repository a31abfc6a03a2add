//! The last seen checkpoint, kept in a file: the signed text, which is evidence if the log forks.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use metering_log::checkpoint::{Checkpoint, Policy};

use crate::failure::Failure;
use crate::new_file::NewFile;

/// This many prove the fork, and cannot fill a disk.
const MOST_EVIDENCE: u32 = 20;

/// The checkpoint in a file; `None` if there is no such file.
pub(crate) fn read(file: &Path, policy: &Policy) -> Result<Option<Checkpoint>, Failure> {
    let failed = |problem: &dyn std::fmt::Display| {
        let advice = "restore it from a backup, or move it away to start anew";
        Failure::Failed(format!("cannot continue from {}: {problem}; {advice}", file.display()))
    };
    match fs::read_to_string(file) {
        Ok(text) => policy.open(&text).map(|trusted| Some(trusted.checkpoint)).map_err(|error| failed(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// Replaces the file atomically: a crash leaves the old or the new checkpoint.
pub(crate) fn write(file: &Path, checkpoint: &str) -> Result<(), Failure> {
    let mut new = NewFile::next_to(file, true)?;
    let written = new.write_all(checkpoint.as_bytes()).and_then(|()| publish(new.partial()));
    written.map_err(|error| new.cannot_write(&error))?;
    new.finish()
}

/// Checkpoints are public, and a web server may run as another user.
#[cfg(unix)]
fn publish(file: &Path) -> io::Result<()> {
    fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o644))
}

#[cfg(not(unix))]
fn publish(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Keeps a checkpoint that contradicts the one in the file, next to it. Never replaces earlier evidence with another: the
/// log decides what it serves next.
pub(crate) fn write_evidence(file: &Path, checkpoint: &str) -> Result<PathBuf, Failure> {
    let named = |number: u32| {
        let mut name = file.as_os_str().to_owned();
        name.push(if number == 1 { ".evidence".to_owned() } else { format!(".evidence{number}") });
        PathBuf::from(name)
    };
    let known = |path: &Path| fs::read(path).is_ok_and(|bytes| bytes == checkpoint.as_bytes());
    let free = |path: &PathBuf| path.symlink_metadata().is_err() || known(path);
    let Some(path) = (1..=MOST_EVIDENCE).map(named).find(free) else {
        let problem = format!("there are {MOST_EVIDENCE} files with evidence next to {} already", file.display());
        return Err(Failure::Conflict(problem));
    };
    write(&path, checkpoint)?;
    Ok(path)
}
