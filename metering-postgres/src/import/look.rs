//! A store that is only looked at, before another is moved there.

use std::cmp::Ordering;

use metering_core::StoreError;
use metering_core::transfer::{Import, SourceId, Standing};

use crate::migrations::{MOVABLE, supported};
use crate::store::PostgresStore;

/// A store as it stands, whose schema may be an earlier one.
#[derive(Debug)]
pub struct Look {
    store: PostgresStore,
    found: i64,
}

impl Look {
    pub(super) fn new(store: PostgresStore, found: i64) -> Result<Self, StoreError> {
        let supported = supported();
        match found.cmp(&supported) {
            Ordering::Greater => Err(StoreError::NewerVersion { found, supported }),
            _ if found < MOVABLE => Err(StoreError::Unavailable(
                format!("its schema is of version {found}; start a server on it first, which brings it up to date")
                    .into(),
            )),
            _ => Ok(Self { store, found }),
        }
    }

    /// What stands there.
    ///
    /// # Errors
    /// When the database cannot say.
    pub async fn standing(&self, source: &SourceId) -> Result<Standing, StoreError> {
        self.store.standing(source).await
    }

    /// From which version of the schema to which whoever opens the store would bring it, where it is an earlier one.
    #[must_use]
    pub fn upgrade(&self) -> Option<(i64, i64)> {
        let supported = supported();
        (self.found < supported).then_some((self.found, supported))
    }
}
