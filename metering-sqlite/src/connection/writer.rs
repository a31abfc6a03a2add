//! The writer thread.
//!
//! SQLite lets only one connection write at a time, so one thread owns that connection and all other threads send it
//! work. The thread also owns the cache, which therefore needs no lock. A database in memory has no such thread: the
//! caller's thread does its work, so tests can stop Tokio's clock, which would advance while they wait for a thread.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use metering_core::charging::{Outcome, Posting};
use metering_core::store::CommitSource;
use metering_core::{StoreError, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::charging::cache::Cache;
use crate::charging::commit;
use crate::connection::health::Health;
use crate::error::{Result, commit_error, store_error};
use crate::journal::Snapshot;

/// The idle time before the journal is folded.
const IDLE: Duration = Duration::from_secs(10);
/// Accounts that are folded in one step when there is no work. Work that arrives during a step waits for a few
/// milliseconds.
const FOLDED_WHEN_IDLE: usize = 256;
/// The same when the store is closed.
const FOLDED_AT_THE_END: usize = 4_096;
/// How long to wait after a slice: long enough for another process to get the lock.
const BETWEEN_SLICES: Duration = Duration::from_millis(2);

type Work = Box<dyn FnOnce(&mut WriterState) + Send>;

/// A handle to the connection that writes.
pub(crate) struct Writer(Worker);

/// The thread that does the work.
enum Worker {
    Thread { work: Option<mpsc::Sender<Work>>, thread: Option<JoinHandle<()>> },
    Caller(Box<Mutex<WriterState>>),
}

/// The state of the writer.
struct WriterState {
    connection: Connection,
    cache: Cache,
    health: Arc<Health>,
    /// Why the store must be reopened: a flush failed, or the files are gone. Once this is set, nothing is written.
    broken: Option<String>,
    /// Meters whose charges wait. Each in turn commits a batch, and other work comes in between.
    sources: VecDeque<Arc<dyn CommitSource>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, health: Arc<Health>) -> Result<Self> {
        let (work, inbox) = mpsc::channel::<Work>();
        let mut state = WriterState::new(connection, health);
        let thread = std::thread::Builder::new()
            .name("metering-sqlite-writer".to_owned())
            .spawn(move || {
                // Callers that wait for a thread that has panicked, or call it later, must get an error.
                while catch_unwind(AssertUnwindSafe(|| state.serve(&inbox))).is_err() {
                    state.broken.get_or_insert_with(|| "a write panicked".to_owned());
                    state.cache.clear();
                }
                state.close();
            })
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Self(Worker::Thread { work: Some(work), thread: Some(thread) }))
    }

    /// A writer for a database in memory.
    pub(crate) fn without_thread(connection: Connection, health: Arc<Health>) -> Self {
        Self(Worker::Caller(Box::new(Mutex::new(WriterState::new(connection, health)))))
    }

    /// Commits a batch of postings.
    pub(crate) async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>> {
        self.run(move |state| {
            let mut outcomes = Vec::new();
            state.commit((postings, now), &mut |decided| outcomes = decided)?;
            Ok(outcomes)
        })
        .await
    }

    /// Lets the thread commit what waits in `source`. Returns `false` if there is no thread.
    pub(crate) fn commit_from(&self, source: Arc<dyn CommitSource>) -> bool {
        let Worker::Thread { work: Some(work), .. } = &self.0 else { return false };
        work.send(Box::new(move |state: &mut WriterState| state.sources.push_back(source))).is_ok()
    }

    /// Runs `write` in its own transaction.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Snapshot<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(move |state| {
            state.transaction(|transaction, cache| {
                let snapshot = Snapshot::synced(transaction, &mut cache.unfolded);
                let result = write(&snapshot)?;
                let touched = snapshot.into_touched();
                touched.into_iter().for_each(|account| cache.forget(account));
                // The new rows of the journal name the accounts to read again, including those that this write changed.
                cache.read_journal(transaction)?;
                Ok(result)
            })
        })
        .await
    }

    /// Folds the whole journal, so that the tables have everything, and reads them in the same transaction, after all
    /// earlier writes.
    pub(crate) async fn fold_and_read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(move |state| {
            state.transaction(|transaction, cache| {
                while cache.fold(transaction, FOLDED_AT_THE_END)? {}
                read(transaction)
            })
        })
        .await
    }

    /// Reads one snapshot with the writer's connection, after all earlier writes.
    pub(crate) async fn use_connection<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(move |state| {
            let behavior = TransactionBehavior::Deferred;
            let transaction = state.connection.transaction_with_behavior(behavior).map_err(store_error)?;
            state.cache.sync(&transaction)?;
            read(&Snapshot::synced(&transaction, &mut state.cache.unfolded))
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut WriterState) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let sender = match &self.0 {
            Worker::Thread { work, .. } => work.as_ref(),
            Worker::Caller(state) => return attempt_here(state, task),
        };
        let (reply, result) = oneshot::channel();
        let work: Work = Box::new(move |state| {
            // The caller may have gone away; the work is done regardless.
            let _ = reply.send(state.attempt(task));
        });
        let not_begun = || StoreError::Closed("the writer thread has ended".to_owned());
        sender.ok_or_else(not_begun)?.send(work).map_err(|_| not_begun())?;
        result.await.map_err(|_| StoreError::Broken("a write ended without a result".to_owned()))?
    }
}

fn attempt_here<T>(state: &Mutex<WriterState>, task: impl FnOnce(&mut WriterState) -> Result<T>) -> Result<T> {
    let panicked = |_| StoreError::Closed("a thread panicked while it used the database".to_owned());
    state.lock().map_err(panicked)?.attempt(task)
}

impl WriterState {
    fn new(connection: Connection, health: Arc<Health>) -> Self {
        Self { connection, cache: Cache::default(), health, broken: None, sources: VecDeque::new() }
    }

    /// Does work until no more can come, and folds the journal when there is none.
    fn serve(&mut self, inbox: &mpsc::Receiver<Work>) {
        let mut timeout = IDLE;
        loop {
            match inbox.recv_timeout(timeout) {
                Ok(work) => {
                    timeout = IDLE;
                    work(self);
                }
                Err(RecvTimeoutError::Timeout) if !self.sources.is_empty() => timeout = IDLE,
                Err(RecvTimeoutError::Timeout) => {
                    let had_unfolded = self.cache.has_unfolded();
                    let is_more = self.fold_if_alone(FOLDED_WHEN_IDLE);
                    if had_unfolded && !is_more {
                        self.release_pages();
                    }
                    timeout = if is_more { BETWEEN_SLICES } else { IDLE };
                }
                Err(RecvTimeoutError::Disconnected) => {
                    while !self.sources.is_empty() {
                        self.commit_next();
                    }
                    return;
                }
            }
            self.commit_next();
            if !self.sources.is_empty() {
                timeout = Duration::ZERO;
            }
        }
    }

    /// Commits a batch of charges, if any wait.
    fn commit_next(&mut self) {
        let Some(source) = self.sources.pop_front() else { return };
        let is_more = source
            .commit_next(&mut |postings, now, decided| self.attempt(|state| state.commit((postings, now), decided)));
        if is_more {
            self.sources.push_back(source);
        }
    }

    fn commit(&mut self, batch: (Vec<Posting>, Timestamp), decided: &mut dyn FnMut(Vec<Outcome>)) -> Result<()> {
        commit::commit(&mut self.connection, &mut self.cache, batch, decided)
    }

    /// If this process has charged, folds the rest of the journal, so that the next one starts faster. Nothing is lost if
    /// this fails.
    fn close(&mut self) {
        if !self.cache.has_charged {
            return;
        }
        let _ = self.attempt(|state| state.transaction(|_, _| Ok(())));
        // Once another process commits, the rest is for that one to fold.
        while self.fold_if_alone(FOLDED_AT_THE_END) {
            std::thread::sleep(BETWEEN_SLICES);
        }
    }

    /// Folds some accounts, unless another process has committed since we last looked. Returns whether anything is left
    /// to do here. An error is not reported now: the next use of the store runs into it.
    fn fold_if_alone(&mut self, accounts: usize) -> bool {
        let version = self.cache.data_version();
        let fold = |transaction: &Transaction<'_>, cache: &mut Cache| {
            if cache.data_version() == version { cache.fold(transaction, accounts) } else { Ok(false) }
        };
        self.cache.has_unfolded() && self.attempt(|state| state.transaction(fold)).unwrap_or(false)
    }

    /// Frees the pages that folding has read, up to 64 MiB. The operating system's cache has them too.
    fn release_pages(&self) {
        // If it fails, the memory stays in use.
        let _ = self.connection.execute_batch("PRAGMA shrink_memory");
    }

    /// Runs `write` in a transaction, with a cache that is up to date.
    fn transaction<T>(&mut self, write: impl FnOnce(&Transaction<'_>, &mut Cache) -> Result<T>) -> Result<T> {
        self.cache.load(&mut self.connection)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior).map_err(store_error)?;
        self.cache.sync(&transaction)?;
        // If anything fails, `attempt` clears the cache.
        let result = write(&transaction, &mut self.cache)?;
        transaction.commit().map_err(commit_error)?;
        Ok(result)
    }

    fn attempt<T>(&mut self, task: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if let Some(reason) = &self.broken {
            return Err(StoreError::Closed(reason.clone()));
        }
        if let Some(loss) = self.health.loss() {
            return Err(StoreError::Closed(loss.to_owned()));
        }
        let mut result = task(self);
        // Check after the commit, before it is reported: writes to a deleted file are lost.
        if let Some(loss) = self.health.loss() {
            result = Err(StoreError::Broken(loss.to_owned()));
        }
        if let Err(StoreError::Broken(reason)) = &result {
            self.broken = Some(reason.clone());
        }
        self.health.note(&result);
        if result.is_err() {
            // After an error the cache cannot be trusted.
            self.cache.clear();
        }
        result
    }
}

impl Drop for Writer {
    /// Waits until all queued work is done, so that the store can be reopened immediately after it was dropped.
    fn drop(&mut self) {
        if let Worker::Thread { work, thread } = &mut self.0 {
            drop(work.take());
            // The last owner may be a task that the writer thread itself has just woken for the last time.
            if let Some(thread) = thread.take_if(|thread| thread.thread().id() != std::thread::current().id()) {
                let _ = thread.join();
            }
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use metering_core::store::CommitBatch;

    use super::*;
    use crate::connection::open_in_memory;

    /// Takes no postings, and keeps how a commit would have ended.
    #[derive(Default)]
    struct Waiting(Mutex<Option<StoreError>>);

    impl CommitSource for Waiting {
        fn commit_next(&self, commit: &mut CommitBatch<'_>) -> bool {
            let ended = commit(Vec::new(), Timestamp::from_unix_millis(0), &mut |_| {});
            *self.0.lock().unwrap() = ended.err();
            false
        }
    }

    #[tokio::test]
    async fn panic_of_a_write_breaks_the_store_for_all_that_come_after() {
        let writer = Writer::start(open_in_memory().unwrap(), Arc::new(Health::in_memory())).unwrap();
        let panicked = writer.run(|_| -> Result<()> { panic!("a write has a bug") }).await;
        assert!(panicked.is_err_and(|error| error.outcome_is_unknown()));
        let after = writer.run(|_| Ok(())).await;
        assert!(matches!(after, Err(StoreError::Closed(_))), "{after:?}");
        let source = Arc::<Waiting>::default();
        assert!(writer.commit_from(Arc::clone(&source) as _));
        drop(writer);
        let ended = source.0.lock().unwrap().take();
        assert!(matches!(ended, Some(StoreError::Closed(_))), "{ended:?}");
    }
}
