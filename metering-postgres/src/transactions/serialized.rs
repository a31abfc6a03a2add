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

use crate::connection::session::{Client, GenericClient, Transaction};
use crate::connection::wait::{REPORT_TIMEOUT, RESPONSE_TIMEOUT, within};
use crate::error::{Failure, Result};
use crate::migrations::UNFINISHED;
use crate::rows::{execute, one};
use crate::store::PostgresStore;
use crate::transactions::outcome::{TransactionFailure, TransactionId};
use crate::transactions::retry::retried;

/// A serialized write that holds the lock.
#[derive(Debug)]
pub(crate) struct SerializedWrite<'t> {
    transaction: &'t Transaction<'t>,
}

/// The writers that may take the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOwner {
    /// Any writer, as long as no store is being moved here.
    AnyWriter,
    /// Only the move with this name.
    Move([u8; 16]),
    /// Unconditional: for the start of a move.
    Unconditional,
}

impl WriteOwner {
    /// Waits for the lock and takes it.
    async fn take(self, transaction: &Transaction<'_>) -> Result<()> {
        let sql = "UPDATE turn SET last_id = last_id WHERE id = 1";
        let (taken, problem) = match &self {
            Self::Unconditional => (execute(transaction, sql, &[]).await?, "the row of turn is missing"),
            Self::AnyWriter => {
                (execute(transaction, &format!("{sql} AND import_owner IS NULL"), &[]).await?, UNFINISHED)
            }
            Self::Move(owner) => {
                let sql = format!("{sql} AND import_owner = $1");
                let problem = "another move to this database has begun; this one has stopped";
                (execute(transaction, &sql, &[&owner.as_slice()]).await?, problem)
            }
        };
        if taken == 1 { Ok(()) } else { Err(Failure::Store(StoreError::Unavailable(problem.into()))) }
    }
}

impl<'t> SerializedWrite<'t> {
    /// The transaction to run statements on.
    pub(crate) fn client(&self) -> &'t Transaction<'t> {
        self.transaction
    }
}

/// New ids, above all earlier ones, in ascending order. Only for a transaction that holds the lock.
pub(crate) async fn next_ids<C: GenericClient>(client: &C, count: usize) -> Result<Vec<i64>> {
    let sql = "UPDATE turn SET last_id = last_id + $1 WHERE id = 1 RETURNING last_id";
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let last: i64 = one(client, sql, &[&count]).await?.try_get(0)?;
    Ok((last - count + 1..=last).collect())
}

impl PostgresStore {
    /// Runs a serialized write in one transaction. Retries transient failures.
    pub(crate) async fn write<T: Send>(
        &self,
        operation: impl for<'t> Fn(&'t SerializedWrite<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.write_as(WriteOwner::AnyWriter, RESPONSE_TIMEOUT, operation).await
    }

    /// Like [`PostgresStore::write`], with a timeout for writes that may take long.
    pub(crate) async fn write_within<T: Send>(
        &self,
        wait: Duration,
        operation: impl for<'t> Fn(&'t SerializedWrite<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.write_as(WriteOwner::AnyWriter, wait, operation).await
    }

    /// Like [`PostgresStore::write_within`], for a given holder of the lock.
    pub(crate) async fn write_as<T: Send>(
        &self,
        owner: WriteOwner,
        wait: Duration,
        operation: impl for<'t> Fn(&'t SerializedWrite<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        Ok(retried(|| self.try_to_write(owner, wait, &operation)).await?)
    }

    async fn try_to_write<T: Send>(
        &self,
        owner: WriteOwner,
        wait: Duration,
        operation: &(impl for<'t> Fn(&'t SerializedWrite<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync),
    ) -> Result<T> {
        let (id, now) = (TransactionId::draw()?, self.now());
        let mut client = self.pool.get().await?;
        let result = write_one(&mut client, id, now, (owner, wait), operation).await;
        self.end(client, id, now, result).await
    }

    /// Reads with a single statement. Retries transient failures.
    pub(crate) async fn read<T: Send>(
        &self,
        query: impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        Ok(retried(|| self.try_to_read(&query)).await?)
    }

    async fn try_to_read<T: Send>(
        &self,
        query: &(impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T>> + Send + Sync),
    ) -> Result<T> {
        let client = self.pool.get().await?;
        let result = within(RESPONSE_TIMEOUT, query(&client)).await;
        self.return_connection(client, result)
    }

    /// Reads one snapshot with several statements. Retries transient failures.
    pub(crate) async fn read_at_once<T: Send>(
        &self,
        query: impl for<'t> Fn(&'t Transaction<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync,
    ) -> Result<T, StoreError> {
        Ok(retried(|| self.try_to_read_at_once(&query)).await?)
    }

    async fn try_to_read_at_once<T: Send>(
        &self,
        query: &(impl for<'t> Fn(&'t Transaction<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync),
    ) -> Result<T> {
        let mut client = self.pool.get().await?;
        let result = within(REPORT_TIMEOUT, async {
            let transaction = client.snapshot().await?;
            let result = query(&transaction).await?;
            transaction.commit().await?;
            Ok(result)
        });
        let result = result.await;
        self.return_connection(client, result)
    }

    /// Returns a connection to the pool after a read, or closes it if it is no longer good.
    fn return_connection<T>(&self, client: Client, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(Failure::is_host_failure) {
            self.pool.close(client);
        }
        result
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
    (owner, wait): (WriteOwner, Duration),
    operation: &(impl for<'t> Fn(&'t SerializedWrite<'t>) -> BoxFuture<'t, Result<T>> + Send + Sync),
) -> Result<T, TransactionFailure<T>> {
    let written = within(wait, async {
        let transaction = client.transaction().await?;
        owner.take(&transaction).await?;
        let result = operation(&SerializedWrite { transaction: &transaction }).await?;
        id.mark(&transaction, now).await?;
        Ok((transaction, result))
    });
    let (transaction, result) = written.await?;
    let committed = within(RESPONSE_TIMEOUT, async { Ok(transaction.commit().await?) }).await;
    TransactionFailure::of_commit(committed, result)
}
