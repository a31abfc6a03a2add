use std::cmp::Ordering;

use metering_core::StoreError;
use metering_core::store::SourceId;
use metering_sql::transfer::{Import, TargetState};

use crate::migrations::{MOVABLE, supported};
use crate::store::PostgresStore;

/// A read-only view of a store before a move. Its schema may be of an earlier version.
#[derive(Debug)]
pub struct TargetInspection {
    store: PostgresStore,
    found: i64,
}

impl TargetInspection {
    pub(super) fn new(store: PostgresStore, found: i64) -> Result<Self, StoreError> {
        let supported = supported();
        match found.cmp(&supported) {
            Ordering::Greater => Err(StoreError::NewerVersion { found, supported }),
            _ if found < MOVABLE => Err(StoreError::Unavailable(
                format!("its schema has version {found}; start a server on it first to migrate the schema").into(),
            )),
            _ => Ok(Self { store, found }),
        }
    }

    /// Whether the store is empty, occupied, or part of a move.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn target_state(&self, source: &SourceId) -> Result<TargetState, StoreError> {
        self.store.target_state(source).await
    }

    /// The schema's current version and the one that opening the store would migrate it to; `None` if it is up to date.
    #[must_use]
    pub fn upgrade(&self) -> Option<(i64, i64)> {
        let supported = supported();
        (self.found < supported).then_some((self.found, supported))
    }
}
