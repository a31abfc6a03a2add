//! A pool of read-only connections, so that reads do not wait for the writer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use metering_core::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::Semaphore;

use crate::connection::open_reader;
use crate::error::{Result, store_error};
use crate::journal::{Snapshot, Unfolded};

/// Maximum number of concurrent reads; others wait.
const MAX_READERS: usize = 4;

/// A reader that was not used for this long drops its journal data, if others are in use. Reading it again can take
/// half a second, so those that are used now and then keep it.
const FORGETS_AFTER: Duration = Duration::from_secs(60);
/// But fewer changes than these, which take two megabytes, are not worth it.
const FORGETS_FROM: usize = 100_000;

/// An idle connection, with what it has read of the journal.
#[derive(Debug)]
struct Idle {
    connection: Connection,
    unfolded: Unfolded,
    since: Instant,
}

#[derive(Debug, Clone)]
pub(crate) struct Readers {
    path: Arc<PathBuf>,
    /// Those that were used last are at the end, and are used next.
    idle: Arc<Mutex<Vec<Idle>>>,
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
            Some(Idle { connection, unfolded, .. }) => (connection, unfolded),
            None => (open_reader(&self.path)?, Unfolded::default()),
        };
        let behavior = TransactionBehavior::Deferred;
        let result = {
            let transaction = connection.transaction_with_behavior(behavior).map_err(store_error)?;
            read(&Snapshot::new(&transaction, &mut unfolded))
        };
        if result.is_ok() {
            let since = Instant::now();
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let forgotten = take_unused(&mut idle, since, FORGETS_FROM);
            idle.push(Idle { connection, unfolded, since });
            drop(idle);
            // Millions of changes take a while to drop.
            drop(forgotten);
        }
        result
    }
}

/// Takes the journal data of readers that were not used for long, if it has this many changes.
fn take_unused(idle: &mut [Idle], now: Instant, from: usize) -> Vec<Unfolded> {
    let is_unused = |reader: &&mut Idle| now.saturating_duration_since(reader.since) >= FORGETS_AFTER;
    let unused = idle.iter_mut().filter(is_unused).filter(|reader| reader.unfolded.len() >= from);
    unused.map(|reader| std::mem::take(&mut reader.unfolded)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Change, Row};

    #[test]
    fn readers_that_are_not_used_forget_a_long_journal() {
        let start = Instant::now();
        let reader = |seconds, changes: u32| {
            let mut unfolded = Unfolded::default();
            let changes: Vec<_> = (1..=changes).map(|account| (account.into(), Change::Settings)).collect();
            unfolded.note(i64::try_from(changes.len()).unwrap(), Row { after: 0, at: 0, changes });
            let connection = Connection::open_in_memory().unwrap();
            Idle { connection, unfolded, since: start + Duration::from_secs(seconds) }
        };
        let mut idle = [reader(0, 3), reader(0, 2), reader(1, 3)];
        let forgotten = take_unused(&mut idle, start + FORGETS_AFTER, 3);
        assert_eq!(forgotten.iter().map(Unfolded::len).collect::<Vec<_>>(), [3]);
        assert_eq!(idle.map(|reader| reader.unfolded.len()), [0, 2, 3]);
    }
}
