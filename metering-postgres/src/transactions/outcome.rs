//! Finds out whether a transaction was committed if its `COMMIT` got no response.
//!
//! Each transaction writes a row with a unique id. The lookup tries to insert the same row. If the row exists, or
//! appears while the insert waits for the transaction that holds it, the transaction was committed. If the insert
//! succeeds, the transaction was not committed and never will be: any of its statements still in flight will fail on
//! the new row. A lookup may lose its response too and run again, so its row has a different time, to tell it from the
//! transaction's.
//!
//! The lookup always writes. With a synchronous standby its response therefore waits until the standby has everything
//! before it, including the transaction in question.

use std::time::Duration;

use metering_core::{StoreError, Timestamp};

use crate::connection::session::{GenericClient, Pool};
use crate::connection::wait::{RESPONSE_TIMEOUT, within};
use crate::error::{Failure, Result};
use crate::rows::{execute, one};
use crate::transactions::retry::Backoff;

/// How long to keep looking up a commit that got no response: longer than failovers take, including manual ones. Only
/// the callers that need the result wait.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How long rows are kept: much longer than any lookup takes, even with clock skew, and short enough that a busy
/// service has few.
pub(crate) const KEPT: Duration = Duration::from_secs(15 * 60);

const _: () = assert!(KEPT.as_secs() >= 2 * LOOKUP_TIMEOUT.as_secs());

pub(crate) const INSERT: &str = "INSERT INTO outcome (id, noted_at) VALUES ($1, $2)";

/// The id of one attempt at a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransactionId([u8; 16]);

impl TransactionId {
    /// Draws a random id.
    pub(crate) fn draw() -> Result<Self> {
        let mut id = [0; 16];
        let drawn = getrandom::fill(&mut id);
        drawn.map_err(|error| Failure::Store(StoreError::Unavailable(error.to_string().into())))?;
        Ok(Self(id))
    }

    pub(crate) fn array(&self) -> &[u8; 16] {
        &self.0
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Writes its row within the transaction.
    pub(crate) async fn mark<C: GenericClient>(&self, client: &C, now: Timestamp) -> Result<()> {
        execute(client, INSERT, &[&self.bytes(), &now.unix_millis()]).await.map(drop)
    }

    /// Whether the transaction was committed. Retries until the database responds.
    ///
    /// # Errors
    /// [`StoreError::Broken`] if the database does not respond for too long: the outcome stays unknown.
    pub(crate) async fn was_committed(&self, pool: &Pool, now: Timestamp) -> Result<bool, StoreError> {
        tracing::warn!("no response to a commit; checking in the database whether it happened");
        let mut backoff = Backoff::for_at_most(LOOKUP_TIMEOUT);
        loop {
            let failure = match self.ask(pool, now).await {
                Ok(result) => {
                    tracing::info!(committed = result, "resolved the outcome of a commit that got no response");
                    return Ok(result);
                }
                Err(failure) => failure,
            };
            if !backoff.wait(None).await {
                let cause = StoreError::from(failure);
                return Err(StoreError::Broken(format!(
                    "could not find out whether a transaction was committed: {cause}"
                )));
            }
        }
    }

    async fn ask(&self, pool: &Pool, now: Timestamp) -> Result<bool> {
        let mut client = pool.get().await?;
        let (committed, never) = (now.unix_millis(), now.unix_millis().saturating_add(1));
        let sql = &format!("{INSERT} ON CONFLICT (id) DO UPDATE SET noted_at = outcome.noted_at RETURNING noted_at");
        let found = within(RESPONSE_TIMEOUT, async {
            if client.keeps_settings() {
                return one(&client, sql, &[&self.bytes(), &never]).await;
            }
            // A separate transaction, whose settings make it wait for the disk.
            let transaction = client.transaction().await?;
            let row = one(&transaction, sql, &[&self.bytes(), &never]).await?;
            transaction.commit().await?;
            Ok(row)
        })
        .await;
        if found.as_ref().is_err_and(Failure::is_host_failure) {
            pool.close(client);
        }
        Ok(found?.try_get::<_, i64>(0)? == committed)
    }
}

/// How a transaction failed.
#[derive(Debug)]
pub(crate) enum TransactionFailure<T> {
    /// It was not committed.
    NotCommitted(Failure),
    /// Its commit got no response. `result` is the result if it was committed.
    Unknown { failure: Failure, result: T },
}

impl<T> From<Failure> for TransactionFailure<T> {
    fn from(failure: Failure) -> Self {
        Self::NotCommitted(failure)
    }
}

impl<T> TransactionFailure<T> {
    /// The result of a transaction, given the result of its commit.
    pub(crate) fn of_commit(committed: Result<()>, result: T) -> Result<T, Self> {
        match committed {
            Ok(()) => Ok(result),
            Err(failure) if failure.is_server_response() => Err(Self::NotCommitted(failure)),
            Err(failure) => Err(Self::Unknown { failure, result }),
        }
    }
}
