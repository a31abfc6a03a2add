//! The one thread that writes.
//!
//! SQLite lets one connection write at a time, so one thread holds it and everybody else sends work. The thread also
//! owns the cache, which thereby needs no lock.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use metering_core::{AccountId, Outcome, Posting, StoreError, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::cache::Cache;
use crate::commit;
use crate::error::{Result, commit_error, store_error};
use crate::health::Health;

/// Which cached account a write makes stale: its money, its caps, or its key.
#[derive(Debug)]
pub(crate) enum Touches {
    /// None. An account that the write makes is in nobody's cache yet.
    Nothing,
    /// The one of that id.
    Account(AccountId),
}

type Work = Box<dyn FnOnce(&mut Desk) + Send>;

/// The sending end of the writing thread.
#[derive(Debug)]
pub(crate) struct Writer {
    work: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

/// What the writing thread works with.
struct Desk {
    connection: Connection,
    cache: Cache,
    health: Arc<Health>,
    /// Why the store must be opened again: a flush failed, or the files are gone. From then on nothing is written.
    broken: Option<String>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, health: Arc<Health>) -> Result<Self> {
        let (work, inbox) = mpsc::channel::<Work>();
        let mut desk = Desk { connection, cache: Cache::default(), health, broken: None };
        let thread = std::thread::Builder::new()
            .name("metering-sqlite-writer".to_owned())
            .spawn(move || {
                while let Ok(work) = inbox.recv() {
                    work(&mut desk);
                }
            })
            .map_err(|error| StoreError::Unavailable(Box::new(error)))?;
        Ok(Self { work: Some(work), thread: Some(thread) })
    }

    /// Commits a batch of postings.
    pub(crate) async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>> {
        self.run(move |desk| commit::commit(&mut desk.connection, &mut desk.cache, postings, now)).await
    }

    /// Runs `write` in a transaction of its own.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        touches: Touches,
        write: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write_and_tell(move |transaction| Ok((touches, write(transaction)?))).await
    }

    /// As [`Writer::write`], for what learns only in its transaction whose account it changes.
    pub(crate) async fn write_and_tell<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Transaction<'_>) -> Result<(Touches, T)> + Send + 'static,
    ) -> Result<T> {
        self.run(move |desk| {
            desk.cache.forget_sequence();
            let behavior = TransactionBehavior::Immediate;
            let transaction = desk.connection.transaction_with_behavior(behavior).map_err(store_error)?;
            let (touches, answer) = write(&transaction)?;
            // Forgotten and committed in one piece of this thread's work: no batch is decided in between, and only a
            // batch reads into the cache. When anything fails on the way, all of it is forgotten; see `attempt`.
            if let Touches::Account(account) = &touches {
                desk.cache.forget_account(&transaction, account)?;
            }
            transaction.commit().map_err(commit_error)?;
            Ok(answer)
        })
        .await
    }

    /// Reads with the connection that writes: one snapshot, after all that was written before.
    pub(crate) async fn use_connection<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(move |desk| {
            let behavior = TransactionBehavior::Deferred;
            let transaction = desk.connection.transaction_with_behavior(behavior).map_err(store_error)?;
            let answer = read(&transaction)?;
            // Committed for the temporary tables that a read may have made; the database itself is as it was.
            transaction.commit().map_err(store_error)?;
            Ok(answer)
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, task: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |desk| {
            // The asker may have gone; the work is done all the same.
            let _ = reply.send(desk.attempt(task));
        });
        let not_begun = || StoreError::Closed("the writing thread has ended".to_owned());
        let sender = self.work.as_ref().ok_or_else(not_begun)?;
        sender.send(work).map_err(|_| not_begun())?;
        answer.await.map_err(|_| StoreError::Broken("the writing thread ended during a write".to_owned()))?
    }
}

impl Desk {
    fn attempt<T>(&mut self, task: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if let Some(reason) = &self.broken {
            return Err(StoreError::Closed(reason.clone()));
        }
        if let Some(loss) = self.health.loss() {
            return Err(StoreError::Closed(loss.to_owned()));
        }
        let mut result = task(self);
        // After the commit, and before anybody is told of it: what went into a deleted file is lost.
        if let Some(loss) = self.health.loss() {
            result = Err(StoreError::Broken(loss.to_owned()));
        }
        if let Err(StoreError::Broken(reason)) = &result {
            self.broken = Some(reason.clone());
        }
        self.health.note(&result);
        if result.is_err() {
            // What is cached must be read again rather than trusted.
            self.cache.clear();
        }
        result
    }
}

impl Drop for Writer {
    /// Waits until all work that was sent is done, so that a store that was dropped can be opened anew at once.
    fn drop(&mut self) {
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
