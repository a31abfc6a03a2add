//! From SQLite's errors to the three that the storage contract knows.

use metering_core::StoreError;
use rusqlite::ffi;

/// A failed fsync leaves unknown what is on disk; everything else left the database as it was.
pub(crate) fn store_error(error: rusqlite::Error) -> StoreError {
    let extended = match &error {
        rusqlite::Error::SqliteFailure(failure, _) => Some(failure.extended_code),
        _ => None,
    };
    match extended {
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => StoreError::Broken(error.to_string()),
        Some(code) if matches!(code & 0xff, ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB) => {
            StoreError::Corrupt(error.to_string())
        }
        _ => StoreError::Unavailable(Box::new(error)),
    }
}

/// An error for a stored value that its own type refuses.
pub(crate) fn corrupt(what: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(what.to_string())
}

/// `Result` with the contract's error.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;
