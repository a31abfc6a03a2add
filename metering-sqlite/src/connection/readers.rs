//! A pool of read-only connections, so that reads do not wait for the writer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use metering_core::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::Semaphore;

use crate::connection::open_reader;
use crate::error::{Result, store_error};
use crate::journal::{Snapshot, Unfolded};

/// Maximum number of concurrent reads; others wait.
const MAX_READERS: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Readers {
    path: Arc<PathBuf>,
    /// Connections, with what they have read of the journal.
    idle: Arc<Mutex<Vec<(Connection, Unfolded)>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        let (idle, permits) = (Arc::default(), Arc::new(Semaphore::new(MAX_READERS)));
        Self { path: Arc::new(path), idle, permits }
    }

    /// Runs `read` on one snapshot of the database.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        let readers = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            let result = readers.read_now(read);
            drop(permit);
            result
        });
        task.await.map_err(|error| StoreError::Unavailable(Box::new(error)))?
    }

    /// Like [`Readers::read`], with a new connection, which has no pages cached.
    pub(crate) async fn read_with_new_connection<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let new = Self { idle: Arc::default(), ..self.clone() };
        new.read(read).await
    }

    fn read_now<T>(&self, read: impl FnOnce(&Snapshot<'_>) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (mut connection, mut unfolded) = match idle {
            Some(known) => known,
            None => (open_reader(&self.path)?, Unfolded::default()),
        };
        let behavior = TransactionBehavior::Deferred;
        let result = {
            let transaction = connection.transaction_with_behavior(behavior).map_err(store_error)?;
            read(&Snapshot::new(&transaction, &mut unfolded))
        };
        if result.is_ok() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((connection, unfolded));
        }
        result
    }
}
