//! The checkpoint that was seen last, kept in a file: the signed text, which is evidence if the log forks.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use metering_log::checkpoint::{Checkpoint, Policy};

use crate::failure::Failure;
use crate::new_file::NewFile;

/// The checkpoint in a file; `None` if there is no such file.
pub(crate) fn read(file: &Path, policy: &Policy) -> Result<Option<Checkpoint>, Failure> {
    let failed = |problem: &dyn std::fmt::Display| {
        Failure::Failed(format!("cannot continue from {}: {problem}; name another file to start anew", file.display()))
    };
    match fs::read_to_string(file) {
        Ok(text) => policy.open(&text).map(|trusted| Some(trusted.checkpoint)).map_err(|error| failed(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// Replaces the file at once: a crash leaves the old or the new checkpoint.
pub(crate) fn write(file: &Path, checkpoint: &str) -> Result<(), Failure> {
    let mut new = NewFile::next_to(file, true)?;
    new.write_all(checkpoint.as_bytes()).map_err(|error| new.cannot_write(&error))?;
    new.finish()
}
