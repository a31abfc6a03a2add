//! The writer thread.
//!
//! SQLite lets only one connection write at a time, so one thread owns that connection and all other threads send it
//! work. The thread also owns the cache, which therefore needs no lock.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use metering_core::charging::{Outcome, Posting};
use metering_core::{AccountId, StoreError, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::charging::cache::Cache;
use crate::charging::commit;
use crate::connection::health::Health;
use crate::error::{Result, commit_error, store_error};

/// The account whose cache entry a write makes stale: its balance, its rate limits, or its key.
#[derive(Debug)]
pub(crate) enum Stale {
    /// None. An account that the write creates is not in any cache yet.
    Nothing,
    /// The account with this id.
    Account(AccountId),
}

type Work = Box<dyn FnOnce(&mut WriterState) + Send>;

/// A handle to the writer thread.
#[derive(Debug)]
pub(crate) struct Writer {
    work: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the writer thread.
struct WriterState {
    connection: Connection,
    cache: Cache,
    health: Arc<Health>,
    /// Why the store must be reopened: a flush failed, or the files are gone. Once this is set, nothing is written.
    broken: Option<String>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, health: Arc<Health>) -> Result<Self> {
        let (work, inbox) = mpsc::channel::<Work>();
        let mut state = WriterState { connection, cache: Cache::default(), health, broken: None };
        let thread = std::thread::Builder::new()
            .name("metering-sqlite-writer".to_owned())
            .spawn(move || {
                while let Ok(work) = inbox.recv() {
                    work(&mut state);
                }
            })
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Self { work: Some(work), thread: Some(thread) })
    }

    /// Commits a batch of postings.
    pub(crate) async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>> {
        self.run(move |state| commit::commit(&mut state.connection, &mut state.cache, postings, now)).await
    }

    /// Runs `write` in a transaction of its own.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        stale: Stale,
        write: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write_with_stale(move |transaction| Ok((stale, write(transaction)?))).await
    }

    /// Like [`Writer::write`], for writes that learn only within the transaction which account they change.
    pub(crate) async fn write_with_stale<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Transaction<'_>) -> Result<(Stale, T)> + Send + 'static,
    ) -> Result<T> {
        self.run(move |state| {
            state.cache.forget_sequence();
            let behavior = TransactionBehavior::Immediate;
            let transaction = state.connection.transaction_with_behavior(behavior).map_err(store_error)?;
            let (stale, result) = write(&transaction)?;
            // Eviction and commit are one task of this thread, so no batch can run in between, and only a batch fills
            // the cache. If anything fails, `attempt` clears the whole cache.
            if let Stale::Account(account) = &stale {
                state.cache.forget_account(&transaction, account)?;
            }
            transaction.commit().map_err(commit_error)?;
            Ok(result)
        })
        .await
    }

    /// Reads one snapshot with the writer's connection, after all earlier writes.
    pub(crate) async fn use_connection<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(move |state| {
            let behavior = TransactionBehavior::Deferred;
            let transaction = state.connection.transaction_with_behavior(behavior).map_err(store_error)?;
            let result = read(&transaction)?;
            // The commit keeps temporary tables that the read may have created; the database itself is unchanged.
            transaction.commit().map_err(store_error)?;
            Ok(result)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut WriterState) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, result) = oneshot::channel();
        let work: Work = Box::new(move |state| {
            // The caller may have gone away; the work is done regardless.
            let _ = reply.send(state.attempt(task));
        });
        let not_begun = || StoreError::Closed("the writer thread has ended".to_owned());
        let sender = self.work.as_ref().ok_or_else(not_begun)?;
        sender.send(work).map_err(|_| not_begun())?;
        result.await.map_err(|_| StoreError::Broken("the writer thread ended during a write".to_owned()))?
    }
}

impl WriterState {
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
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
