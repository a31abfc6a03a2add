//! [`SqliteStore`] implements the storage contract. Each method goes to the writer or to a reader.

pub(crate) mod authorizations;
mod backend;
pub(crate) mod backup;
pub(crate) mod events;
pub(crate) mod holds;
pub(crate) mod imports;
mod inspect;
pub(crate) mod keys;
pub(crate) mod operators;
pub(crate) mod payments;
pub(crate) mod signups;
pub(crate) mod verify;

use std::path::Path;
use std::sync::Arc;

use metering_core::StoreError;
use metering_core::store::{CommitSource, Progress, Verification};

use crate::connection::health::Health;
use crate::connection::location::make_folder_of;
use crate::connection::readers::Readers;
use crate::connection::recovery::check_after_crash;
use crate::connection::writer::Writer;
use crate::connection::{open_in_memory, open_writer, prepare_file};
use crate::error::Result;
use crate::journal::Snapshot;
use crate::migrations;
use crate::transfer::moved::refuse_moved;
use crate::usage::history;

/// A [`Store`](metering_core::Store) in one SQLite file.
///
/// Its methods need a Tokio runtime. Dropping it waits for pending writes.
///
/// ```
/// use metering_core::Store;
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let store = SqliteStore::create(&folder.path().join("metering-data/metering.db"))?;
/// store.check().await?;
/// assert_eq!(store.verify().await?.accounts, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) writer: Writer,
    /// `None` if the file is open exclusively, or there is none.
    pub(crate) readers: Option<Readers>,
    pub(crate) health: Arc<Health>,
}

impl SqliteStore {
    /// Opens a database file. Creates it (with mode 0600) or migrates its schema if necessary. Its folder must exist;
    /// [`SqliteStore::create`] creates the folder too.
    ///
    /// A database that was not closed cleanly is first checked for damage.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::{Charge, Service};
    /// use metering_sqlite::SqliteStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("metering.db");
    /// let service = Service::with_defaults(Arc::new(SqliteStore::open(&file)?));
    /// let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
    /// service.meter().drain().await;
    /// drop(service);
    ///
    /// // The charge is in the file.
    /// let service = Service::with_defaults(Arc::new(SqliteStore::open(&file)?));
    /// assert_eq!(service.usage().balance(Some(&key)).await?.credit_balance.to_string(), "1.75");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the file cannot be opened or written to, is not a metering database, is damaged, was written by a newer
    /// version, or was moved elsewhere ([`SqliteStore::mark_moved`]).
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        prepare_file(path)?;
        check_after_crash(path)?;
        let mut connection = open_writer(path)?;
        migrations::migrate(&mut connection)?;
        refuse_moved(&connection)?;
        let health = Arc::new(Health::of(path)?);
        let writer = Writer::start(connection, Arc::clone(&health))?;
        Ok(Self { writer, readers: Some(Readers::new(path.to_owned())), health })
    }

    /// Like [`SqliteStore::open`], but first creates the file's folder, with mode 0700, if it does not exist.
    ///
    /// # Errors
    /// As [`SqliteStore::open`], and when the folder cannot be created.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        make_folder_of(path)?;
        Self::open(path)
    }

    /// Opens a new, empty database in memory, for tests and trials: it is lost when the store is dropped.
    ///
    /// Nothing waits for another thread, so it can be used while Tokio's clock is paused.
    ///
    /// ```
    /// use metering_core::PaymentStore;
    /// use metering_sqlite::SqliteStore;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let store = SqliteStore::in_memory()?;
    /// assert!(store.plans().await?.is_empty());
    /// # Ok::<(), metering_core::StoreError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn in_memory() -> Result<Self, StoreError> {
        let mut connection = open_in_memory()?;
        migrations::migrate(&mut connection)?;
        let health = Arc::new(Health::in_memory());
        Ok(Self { writer: Writer::without_thread(connection, Arc::clone(&health)), readers: None, health })
    }

    /// Copies the current state of the database to a new file while it is in use, and verifies the copy. The file
    /// appears under its name only if the copy is sound. Returns what [`Store::verify`](metering_core::Store::verify) finds in it.
    ///
    /// ```
    /// use metering_sqlite::SqliteStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("metering.db");
    /// # let copy = folder.path().join("copy.db");
    /// let store = SqliteStore::open(&file)?;
    /// let found = store.backup_to(&copy).await?;
    /// assert_eq!(found.discrepancies, []); // the books in the copy balance
    /// assert!(store.backup_to(&copy).await.is_err()); // it does not overwrite a file
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When `path` already exists or cannot be written to, and when the copy is damaged, which means that the database
    /// is too. No file is left behind.
    pub async fn backup_to(&self, path: &Path) -> Result<Verification, StoreError> {
        self.backup_with_progress(path, Arc::new(())).await
    }

    /// As [`SqliteStore::backup_to`], and returns how many bytes were copied. The copy is verified after that.
    ///
    /// # Errors
    /// As [`SqliteStore::backup_to`].
    pub async fn backup_with_progress(
        &self,
        path: &Path,
        progress: Arc<dyn Progress>,
    ) -> Result<Verification, StoreError> {
        let path = path.to_owned();
        self.read(move |connection| backup::copy(connection, &path, &*progress)).await
    }

    /// Reads one snapshot of the database, with a reader, or with the writer's connection if it has no
    /// readers.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let found = match &self.readers {
            Some(readers) => readers.read(read).await,
            None => self.writer.use_connection(read).await,
        };
        self.health.note(&found);
        found
    }

    /// Like [`SqliteStore::read`], with a connection that has no pages cached, so that everything is read from disk.
    async fn read_from_disk<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        match &self.readers {
            Some(readers) => readers.read_with_new_connection(read).await,
            None => self.writer.use_connection(read).await,
        }
    }
}

metering_sql::store! {
    SqliteStore {
        async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>> {
            self.writer.commit(postings, now).await
        }

        fn commit_from(&self, source: Arc<dyn CommitSource>) -> bool {
            self.writer.commit_from(source)
        }

        async fn activity(&self, id: &AccountId, limit: u32) -> Result<Vec<Activity>> {
            let id = id.clone();
            self.read(move |snapshot| history::newest(snapshot, &id, limit)).await
        }

        async fn verify(&self) -> Result<Verification> {
            let found = self.read_from_disk(|snapshot| verify::verify(snapshot)).await;
            self.health.note(&found);
            found
        }

        async fn forget_expired(&self, now: Timestamp) -> Result<u64> {
            metering_sql::expiry::forget(self, now).await
        }

        async fn check_identity(&self) -> Result<()> {
            self.health.check_identity()
        }

        async fn check(&self) -> Result<()> {
            self.health.check_identity()?;
            if self.health.begin_check()? {
                let health = Arc::clone(&self.health);
                self.read_from_disk(move |connection| health.check_damage(connection)).await?;
            }
            let health = Arc::clone(&self.health);
            let room = tokio::task::spawn_blocking(move || health.check_room()).await;
            room.map_err(|error| StoreError::Unavailable(Box::new(error)))??;
            metering_sql::write(self, (), |db, ()| metering_sql::shared(metering_sql::probe::touch(db))).await
        }
    }
}
