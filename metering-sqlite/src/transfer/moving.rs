//! Moving the store to another backend: exclusive access during the move.

use std::path::Path;
use std::sync::Arc;

use metering_core::store::SourceId;
use metering_core::{StoreError, Timestamp};
use metering_sql::{now, recipients};
use rusqlite::params;

use crate::connection::health::Health;
use crate::connection::open_writer_alone;
use crate::connection::recovery::check_after_crash;
use crate::connection::writer::Writer;
use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::migrations;
use crate::script::Statements;
use crate::store::SqliteStore;
use crate::transfer::moved::{Moved, mark};

impl SqliteStore {
    /// Opens an existing database file exclusively: no other process can have it open until the store is dropped. Also
    /// opens a store that was moved.
    ///
    /// [`SqliteStore::mark_moved`] has an example.
    ///
    /// # Errors
    /// As [`SqliteStore::open`], and when another process has the file open.
    pub fn open_alone(path: &Path) -> Result<Self> {
        if !path.is_file() {
            return Err(StoreError::Unavailable(format!("there is no store at {}", path.display()).into()));
        }
        check_after_crash(path)?;
        let mut connection = open_writer_alone(path)?;
        migrations::migrate(&mut connection)?;
        let health = Arc::new(Health::of(path)?);
        Ok(Self { writer: Writer::start(connection, Arc::clone(&health))?, readers: None, health })
    }

    /// The store's own id.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn source_id(&self) -> Result<SourceId> {
        self.read(|snapshot| now(recipients::identity(&mut Statements::new(snapshot)))).await
    }

    /// The "moved" marker, if the store was moved.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn moved(&self) -> Result<Option<Moved>> {
        self.read(|snapshot| mark(snapshot)).await
    }

    /// Marks the store as moved. From then on, only [`SqliteStore::open_alone`] opens it. `to` must not contain a
    /// password.
    ///
    /// ```
    /// use metering_core::{Clock, SystemClock};
    /// use metering_sqlite::SqliteStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("metering.db");
    /// # drop(SqliteStore::open(&file)?);
    /// let store = SqliteStore::open_alone(&file)?; // no server may use it meanwhile
    /// // Copy everything to the new store, and then:
    /// store.mark_moved("postgres://db.example.com/metering", SystemClock.now()).await?;
    /// drop(store);
    /// assert!(SqliteStore::open(&file).unwrap_err().to_string().contains("was moved to postgres://db.example.com"));
    ///
    /// // To go back:
    /// let store = SqliteStore::open_alone(&file)?;
    /// assert!(store.moved().await?.is_some());
    /// assert!(store.unmark_moved().await?);
    /// drop(store);
    /// SqliteStore::open(&file)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the marker cannot be written.
    pub async fn mark_moved(&self, to: &str, at: Timestamp) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO moved (id, destination, at) VALUES (1, ?1, ?2)";
        let to = to.to_owned();
        let write = move |connection: &Snapshot<'_>| connection.execute(sql, params![to, at.unix_millis()]);
        self.writer.write(move |connection| write(connection).map(drop).map_err(store_error)).await
    }

    /// Removes the "moved" marker; `false` when there was none.
    ///
    /// [`SqliteStore::mark_moved`] has an example.
    ///
    /// # Errors
    /// When the change cannot be written.
    pub async fn unmark_moved(&self) -> Result<bool> {
        let delete = |connection: &Snapshot<'_>| connection.execute("DELETE FROM moved", []).map_err(store_error);
        Ok(self.writer.write(move |connection| delete(connection)).await? > 0)
    }
}
