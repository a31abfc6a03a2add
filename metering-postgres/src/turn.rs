//! Serialized writes: all writes except charges run one at a time, across all nodes.
//!
//! Each begins by updating the single row of `turn`, so it waits for all earlier ones, on any node, and its statements
//! then see their effects. This keeps rules over several rows (an email address belongs to one account, an amount to
//! one quote) simple in READ COMMITTED. Charges do not take this lock. A write that changes an account synchronizes
//! with charges on the account's meter row, which both lock before they read anything of the account.
//!
//! Rejected alternative: SERIALIZABLE without this lock. A write to a busy account would conflict with its charges
//! again and again.

use std::time::Duration;

use futures_util::future::BoxFuture;
use metering_core::{StoreError, Timestamp};

use crate::error::{Failure, Result};
use crate::outcome::{Lost, TransactionId};
use crate::retry::Tries;
use crate::rows::{execute, one};
use crate::session::{Client, GenericClient, Transaction};
use crate::store::PostgresStore;
use crate::wait::{ANSWER_WAIT, REPORT_WAIT, close, within};

/// How long a write is retried.
pub(crate) const TRIED_FOR: Duration = Duration::from_secs(10);

/// A serialized write that holds the lock.
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    transaction: &'t Transaction<'t>,
}

/// Who may take the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Any writer, as long as no store is being moved here.
    Everybodys,
    /// Only the move with this name.
    Movers([u8; 16]),
    /// Unconditional: for the start of a move.
    Anybodys,
}

/// The error while a store is being moved here.
pub(crate) const UNFINISHED: &str = "a store is being moved to this database, and the move has not finished; if it was \
     interrupted, run the same `metering admin migrate` again";

impl Whose {
    /// Waits for the lock and takes it.
    async fn take(self, transaction: &Transaction<'_>) -> Result<()> {
        let sql = "UPDATE turn SET last_id = last_id WHERE id = 1";
        let (taken, problem) = match &self {
            Self::Anybodys => (execute(transaction, sql, &[]).await?, "the row of turn is missing"),
            Self::Everybodys => {
                (execute(transaction, &format!("{sql} AND import_owner IS NULL"), &[]).await?, UNFINISHED)
            }
            Self::Movers(owner) => {
                let sql = format!("{sql} AND import_owner = $1");
                let problem = "another move to this database has begun; this one has stopped";
                (execute(transaction, &sql, &[&owner.as_slice()]).await?, problem)
            }
        };
        if taken == 1 { Ok(()) } else { Err(Failure::Store(StoreError::Unavailable(problem.into()))) }
    }
}

impl<'t> Turn<'t> {
    /// The transaction to run statements on.
    pub(crate) fn client(&self) -> &'t Transaction<'t> {
        self.transaction
    }

    /// Like [`Turn::next_id`], for `count` ids, in ascending order.
    pub(crate) async fn next_ids(&self, count: usize) -> Result<Vec<i64>> {
        let sql = "UPDATE turn SET last_id = last_id + $1 WHERE id = 1 RETURNING last_id";
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let last: i64 = one(self.transaction, sql, &[&count]).await?.try_get(0)?;
        Ok((last - count + 1..=last).collect())
    }

    /// A new id, above all earlier ones.
    pub(crate) async fn next_id(&self) -> Result<i64> {
        let sql = "UPDATE turn SET last_id = last_id + 1 WHERE id = 1 RETURNING last_id";
        Ok(one(self.transaction, sql, &[]).await?.try_get(0)?)
    }
}

impl PostgresStore {
    /// Runs a serialized write in one transaction. Retries transient failures.
    pub(crate) async fn write<T: Send>(
        &self,
        fact: impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.write_as(Whose::Everybodys, ANSWER_WAIT, fact).await
    }

    /// Like [`PostgresStore::write`], with a timeout for writes that may take long.
    pub(crate) async fn write_within<T: Send>(
        &self,
        wait: Duration,
        fact: impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.write_as(Whose::Everybodys, wait, fact).await
    }

    /// Like [`PostgresStore::write_within`], for a given holder of the lock.
    pub(crate) async fn write_as<T: Send>(
        &self,
        whose: Whose,
        wait: Duration,
        fact: impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        let mut tries = Tries::for_at_most(TRIED_FOR);
        loop {
            match self.try_to_write(whose, wait, &fact).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => tries.again(failure).await?,
            }
        }
    }

    async fn try_to_write<T: Send>(
        &self,
        whose: Whose,
        wait: Duration,
        fact: &(impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync),
    ) -> Result<T> {
        let (id, now) = (TransactionId::draw()?, self.now());
        let mut client = self.pool.get().await?;
        let ended = write_one(&mut client, id, now, (whose, wait), fact).await;
        self.end(client, id, now, ended).await
    }

    /// Reads with a single statement. Retries transient failures.
    pub(crate) async fn read<T: Send>(
        &self,
        question: impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        let mut tries = Tries::for_at_most(TRIED_FOR);
        loop {
            match self.try_to_read(&question).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => tries.again(failure).await?,
            }
        }
    }

    async fn try_to_read<T: Send>(
        &self,
        question: &(impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T>> + Send + Sync),
    ) -> Result<T> {
        let client = self.pool.get().await?;
        let answer = within(ANSWER_WAIT, question(&client)).await;
        self.leave(client, answer)
    }

    /// Reads one snapshot with several statements. Retries transient failures.
    pub(crate) async fn read_at_once<T: Send>(
        &self,
        question: impl for<'t> Fn(&'t Transaction<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        let mut tries = Tries::for_at_most(TRIED_FOR);
        loop {
            match self.try_to_read_at_once(&question).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => tries.again(failure).await?,
            }
        }
    }

    async fn try_to_read_at_once<T: Send>(
        &self,
        question: &(impl for<'t> Fn(&'t Transaction<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync),
    ) -> Result<T> {
        let mut client = self.pool.get().await?;
        let answer = within(REPORT_WAIT, async {
            let transaction = client.snapshot().await?;
            let answer = question(&transaction).await?;
            transaction.commit().await?;
            Ok(answer)
        });
        let answer = answer.await;
        self.leave(client, answer)
    }

    /// Returns a connection to the pool after a read, or closes it if it is no longer good.
    fn leave<T>(&self, client: Client, answer: Result<T>) -> Result<T> {
        if answer.as_ref().is_err_and(Failure::is_the_hosts) {
            close(&self.pool, client);
        }
        answer
    }

    /// The current time, for the backend's internal rows.
    fn now(&self) -> Timestamp {
        metering_core::Clock::now(&metering_core::SystemClock)
    }
}

/// One attempt at a serialized write, up to the response to its commit.
async fn write_one<T: Send>(
    client: &mut Client,
    id: TransactionId,
    now: Timestamp,
    (whose, wait): (Whose, Duration),
    fact: &(impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync),
) -> Result<T, Lost<T>> {
    let written = within(wait, async {
        let transaction = client.transaction().await?;
        whose.take(&transaction).await?;
        let answer = fact(&Turn { transaction: &transaction }).await?;
        id.mark(&transaction, now).await?;
        Ok((transaction, answer))
    });
    let (transaction, answer) = written.await?;
    let committed = within(ANSWER_WAIT, async { Ok(transaction.commit().await?) }).await;
    Lost::of_commit(committed, answer)
}

/// Locks the meter of an account, so that no charge can come in between.
pub(crate) async fn lock_meter<C: GenericClient>(client: &C, account: i64) -> Result<()> {
    let sql = "SELECT account FROM meter WHERE account = $1 FOR UPDATE";
    one(client, sql, &[&account]).await.map(drop)
}
