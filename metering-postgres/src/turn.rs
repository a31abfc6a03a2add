//! Facts that are not charges, one after the other.
//!
//! Each begins by updating the one row of `turn`, and so waits for those before it, on whichever node; its statements
//! then see all that those did. That makes rules over several rows (an email address belongs to one account, an amount
//! to one quote) as plain as they are to read, in READ COMMITTED. Charges do not take turns: with them, a fact that
//! changes an account meets at the row of its meter, which both lock before they look at anything of it.
//!
//! Rejected: SERIALIZABLE without a turn. A fact about a busy account would fail on its charges again and again.

use std::time::Duration;

use deadpool_postgres::{Client, GenericClient, Transaction};
use futures_util::future::BoxFuture;
use metering_core::{StoreError, Timestamp};

use crate::error::{Failure, Result};
use crate::outcome::{Lost, TransactionId};
use crate::retry::Tries;
use crate::rows::{execute, one};
use crate::store::PostgresStore;
use crate::wait::{ANSWER_WAIT, REPORT_WAIT, close, within};

/// How long a fact is tried.
pub(crate) const TRIED_FOR: Duration = Duration::from_secs(10);

/// A fact being written, whose turn it is.
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    transaction: &'t Transaction<'t>,
}

impl<'t> Turn<'t> {
    /// What statements are run on.
    pub(crate) fn client(&self) -> &'t Transaction<'t> {
        self.transaction
    }

    /// A number that no fact had, above those of all facts before.
    pub(crate) async fn next_id(&self) -> Result<i64> {
        let sql = "UPDATE turn SET last_id = last_id + 1 WHERE id = 1 RETURNING last_id";
        Ok(one(self.transaction, sql, &[]).await?.try_get(0)?)
    }
}

impl PostgresStore {
    /// Writes a fact as one transaction, in its turn; tries again what failed through no fault of its own.
    pub(crate) async fn write<T: Send>(
        &self,
        fact: impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.write_within(ANSWER_WAIT, fact).await
    }

    /// The same for what may take long.
    pub(crate) async fn write_within<T: Send>(
        &self,
        wait: Duration,
        fact: impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        let mut tries = Tries::for_at_most(TRIED_FOR);
        loop {
            match self.try_to_write(wait, &fact).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => tries.again(failure).await?,
            }
        }
    }

    async fn try_to_write<T: Send>(
        &self,
        wait: Duration,
        fact: &(impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync),
    ) -> Result<T> {
        let (id, now) = (TransactionId::draw()?, self.now());
        let mut client = self.pool.get().await?;
        let ended = write_one(&mut client, id, now, wait, fact).await;
        self.end(client, id, now, ended).await
    }

    /// Reads in one statement.
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

    /// Reads in several statements what is of one moment.
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
            let builder = client.build_transaction();
            let isolation = tokio_postgres::IsolationLevel::RepeatableRead;
            let transaction = builder.isolation_level(isolation).read_only(true).start().await?;
            let answer = question(&transaction).await?;
            transaction.commit().await?;
            Ok(answer)
        });
        let answer = answer.await;
        self.leave(client, answer)
    }

    /// Gives a connection back that was read with, if it is still good.
    fn leave<T>(&self, client: Client, answer: Result<T>) -> Result<T> {
        if answer.as_ref().is_err_and(Failure::is_the_hosts) {
            close(&self.pool, client);
        }
        answer
    }

    /// The time, for what only the backend itself keeps.
    fn now(&self) -> Timestamp {
        metering_core::Clock::now(&metering_core::SystemClock)
    }
}

/// One try of a fact, up to its commit's answer.
async fn write_one<T: Send>(
    client: &mut Client,
    id: TransactionId,
    now: Timestamp,
    wait: Duration,
    fact: &(impl for<'t> Fn(&'t Turn<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync),
) -> Result<T, Lost<T>> {
    let written = within(wait, async {
        let transaction = client.transaction().await?;
        execute(&transaction, "UPDATE turn SET last_id = last_id WHERE id = 1", &[]).await?;
        let answer = fact(&Turn { transaction: &transaction }).await?;
        id.mark(&transaction, now).await?;
        Ok((transaction, answer))
    });
    let (transaction, answer) = written.await?;
    let committed = within(ANSWER_WAIT, async { Ok(transaction.commit().await?) }).await;
    Lost::of_commit(committed, answer)
}

/// Locks the meter of an account, so that no charge of it comes in between.
pub(crate) async fn lock_meter<C: GenericClient>(client: &C, account: i64) -> Result<()> {
    let sql = "SELECT account FROM meter WHERE account = $1 FOR UPDATE";
    one(client, sql, &[&account]).await.map(drop)
}
