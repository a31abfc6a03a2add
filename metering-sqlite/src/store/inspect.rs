//! Inspects a database file without changing it.

use std::path::Path;

use metering_core::StoreError;
use metering_core::store::Inspection;
use rusqlite::{Connection, OpenFlags};

use crate::error::store_error;
use crate::migrations;
use crate::store::SqliteStore;

impl SqliteStore {
    /// Reads a file's schema version, even while others use it. Does not create or migrate a database.
    ///
    /// ```
    /// use metering_sqlite::SqliteStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("metering.db");
    /// assert!(SqliteStore::inspect(&path).is_err()); // there is no such file
    /// let store = SqliteStore::open(&path)?;
    /// let found = SqliteStore::inspect(&path)?;
    /// assert_eq!(found.schema, Some(found.supported));
    /// # drop(store);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the file does not exist, cannot be read, or is not one of this program.
    pub fn inspect(path: &Path) -> Result<Inspection, StoreError> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(store_error)?;
        migrations::refuse_foreign(&connection)?;
        let schema = migrations::version(&connection)?;
        Ok(Inspection {
            schema: (schema > 0).then_some(schema),
            supported: migrations::supported(),
            unsafe_settings: Vec::new(),
            missing_rights: Vec::new(),
        })
    }
}
