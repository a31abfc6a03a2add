//! The "moved" marker, which keeps a store from being used after it was moved to another backend.

use metering_core::{StoreError, Timestamp};
use rusqlite::Connection;

use crate::error::{Result, store_error};
use crate::rows::first;

/// The "moved" marker: where the store was moved to, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The new store's URL, without a password.
    pub to: String,
    /// When it was moved.
    pub at: Timestamp,
}

/// Fails if the store was moved: charges recorded in it now would be missing from the new store.
pub(crate) fn refuse_moved(connection: &Connection) -> Result<()> {
    let Some(Moved { to, at }) = mark(connection)? else { return Ok(()) };
    let problem = format!(
        "this store was moved to {to} at {at}; use that one (`metering admin migrate --go-back` reopens this one)"
    );
    Err(StoreError::Unavailable(problem.into()))
}

pub(crate) fn mark(connection: &Connection) -> Result<Option<Moved>> {
    let sql = "SELECT destination, at FROM moved WHERE id = 1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    first(&mut statement, [], |row| Ok(Ok(Moved { to: row.get(0)?, at: Timestamp::from_unix_millis(row.get(1)?) })))
}
