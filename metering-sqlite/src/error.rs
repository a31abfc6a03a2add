//! Maps SQLite's errors to those of the storage contract.

use metering_core::StoreError;
use rusqlite::{Error, ffi};

/// Maps the error of a statement. Its transaction had no effect, unless a flush failed.
pub(crate) fn store_error(error: Error) -> StoreError {
    let code = extended_code(&error);
    match code {
        Some(code) if is_failed_flush(code) => StoreError::Broken(error.to_string()),
        Some(code) if matches!(code & 0xff, ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB) => {
            StoreError::Corrupt(error.to_string())
        }
        _ => StoreError::Unavailable(Box::new(error)),
    }
}

/// Maps the error of a `COMMIT`.
///
/// After an I/O error the outcome is unknown: the commit frame may have reached the write-ahead log, where recovery
/// would find it. On a full disk nothing was committed: the commit frame is the last one, and it was not written whole.
pub(crate) fn commit_error(error: Error) -> StoreError {
    match extended_code(&error) {
        Some(code) if code & 0xff == ffi::SQLITE_IOERR && !is_failed_flush(code) => {
            StoreError::OutcomeUnknown(error.to_string())
        }
        _ => store_error(error),
    }
}

fn extended_code(error: &Error) -> Option<i32> {
    match error {
        Error::SqliteFailure(failure, _) => Some(failure.extended_code),
        _ => None,
    }
}

const fn is_failed_flush(code: i32) -> bool {
    matches!(code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

/// The error for stored data that is invalid.
pub(crate) fn corrupt(what: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(what.to_string())
}

/// The error for a column (`table.column`) whose value is invalid. `problem` must not repeat a secret.
pub(crate) fn corrupt_column(column: &str, problem: impl std::fmt::Display) -> StoreError {
    corrupt(format_args!("{column}: {problem}"))
}

/// `Result` with the storage contract's error.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_that_did_not_happen_are_unavailable() {
        // error code, outcome unknown after a statement, outcome unknown after a COMMIT
        let table = [
            (ffi::SQLITE_IOERR_FSYNC, true, true),
            (ffi::SQLITE_IOERR_DIR_FSYNC, true, true),
            (ffi::SQLITE_IOERR_WRITE, false, true),
            (ffi::SQLITE_IOERR_READ, false, true),
            (ffi::SQLITE_IOERR_SHMMAP, false, true),
            (ffi::SQLITE_FULL, false, false),
            (ffi::SQLITE_BUSY, false, false),
            (ffi::SQLITE_CORRUPT, false, false),
        ];
        for (code, statement, commit) in table {
            let error = || Error::SqliteFailure(ffi::Error::new(code), None);
            let unknown = (store_error(error()).outcome_is_unknown(), commit_error(error()).outcome_is_unknown());
            assert_eq!(unknown, (statement, commit), "{code}");
        }
    }
}
