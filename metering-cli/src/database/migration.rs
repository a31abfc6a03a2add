//! The two ends of a move: a SQLite file opened exclusively, and the PostgreSQL database that it is copied to.

use std::ffi::OsString;

use metering_core::store::{LogStore, PreviousLog, SourceId, Verification};
use metering_core::{Store, StoreError, Timestamp};
use metering_log::checkpoint::SignedCheckpoint;
use metering_postgres::{PostgresStore, TargetInspection};
use metering_sql::transfer::{Export, Import};
use metering_sqlite::{Moved, SqliteStore};

use super::Location;
use crate::failure::Failure;

/// The store to move. No other process can open it until this is dropped.
#[derive(Debug)]
pub(crate) struct Origin {
    location: Location,
    store: SqliteStore,
}

/// The target of a move, not open yet.
#[derive(Debug)]
pub(crate) struct Destination(Location);

/// The target of a move, open.
#[derive(Debug)]
pub(crate) struct Target(PostgresStore);

impl Origin {
    /// Opens the store that a URL names.
    pub(crate) fn open(url: &OsString) -> Result<Self, Failure> {
        let location = Location::from_url(url)?;
        let Location::Sqlite(path) = &location else {
            return Err(Failure::Usage("--from must be sqlite:PATH; only SQLite stores can be moved".to_owned()));
        };
        let store = SqliteStore::open_alone(path).map_err(|error| location.cannot_open(&error))?;
        Ok(Self { location, store })
    }

    /// Its URL.
    pub(crate) fn shown(&self) -> String {
        self.location.to_string()
    }

    pub(crate) fn store(&self) -> &dyn Export {
        &self.store
    }

    /// Recomputes its books.
    pub(crate) async fn verify(&self) -> Result<Verification, StoreError> {
        self.store.verify().await
    }

    pub(crate) async fn id(&self) -> Result<SourceId, StoreError> {
        self.store.source_id().await
    }

    /// How its log ended, if it has one: as its last published checkpoint says, which others have seen, or as it is stored
    /// if nothing was published.
    pub(crate) async fn log(&self) -> Result<Option<PreviousLog>, StoreError> {
        let Some(last) = self.store.log_epochs().await?.pop() else { return Ok(None) };
        let published = last.checkpoint.as_ref().and_then(|(_, note)| note.parse::<SignedCheckpoint>().ok());
        Ok(Some(published.map_or_else(
            || last.head(),
            |signed| {
                let (origin, head) = (last.origin.clone(), signed.checkpoint());
                PreviousLog { origin, size: head.size(), root: *head.root().as_bytes() }
            },
        )))
    }

    /// Where the store was moved to, if it has the "moved" marker.
    pub(crate) async fn moved(&self) -> Result<Option<Moved>, StoreError> {
        self.store.moved().await
    }

    /// Sets the "moved" marker.
    pub(crate) async fn mark(&self, to: &str, at: Timestamp) -> Result<(), StoreError> {
        self.store.mark_moved(to, at).await
    }

    /// Removes the "moved" marker.
    pub(crate) async fn unmark(&self) -> Result<bool, StoreError> {
        self.store.unmark_moved().await
    }
}

impl Destination {
    /// The location that a URL names.
    pub(crate) fn of(url: &OsString) -> Result<Self, Failure> {
        match Location::from_url(url)? {
            location @ Location::Postgres(_) => Ok(Self(location)),
            Location::Sqlite(_) => {
                Err(Failure::Usage("--to must be postgres://...; stores can only be moved to PostgreSQL".to_owned()))
            }
        }
    }

    /// Its URL, without the password.
    pub(crate) fn shown(&self) -> String {
        self.0.to_string()
    }

    /// Opens it as the target of a move, and creates the schema if there is none.
    pub(crate) async fn open(&self) -> Result<Target, Failure> {
        let Location::Postgres(config) = &self.0 else { return Err(self.other()) };
        let store = PostgresStore::connect_to_import(config).await.map_err(|error| self.0.cannot_open(&error))?;
        Ok(Target(store))
    }

    /// Opens it read-only and changes nothing. `None` if there is no schema yet.
    pub(crate) async fn look(&self) -> Result<Option<TargetInspection>, Failure> {
        let Location::Postgres(config) = &self.0 else { return Err(self.other()) };
        PostgresStore::connect_to_inspect(config).await.map_err(|error| self.0.cannot_open(&error))
    }

    fn other(&self) -> Failure {
        Failure::Usage(format!("cannot move a store to {}", self.0))
    }
}

impl Target {
    pub(crate) fn store(&self) -> &dyn Import {
        &self.0
    }

    /// Recomputes its books.
    pub(crate) async fn verify(&self) -> Result<Verification, StoreError> {
        self.0.verify().await
    }
}
