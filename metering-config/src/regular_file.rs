//! Reads files whose path an operator configured, without blocking on a pipe.

use std::io;
use std::path::Path;

/// The largest file that is read. A chain of certificates has a few kilobytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The contents of a regular file; symbolic links are followed. Blocks for as long as the file system does.
///
/// # Errors
/// When it cannot be read, is larger than 1 MiB, or is a pipe, a device or a folder.
pub(crate) fn read(file: &Path) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a pipe blocks until it has a writer.
    let found = std::fs::metadata(file)?;
    if !found.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    if found.len() > MAX_BYTES {
        return Err(io::Error::other("is larger than 1 MiB"));
    }
    std::fs::read(file)
}
