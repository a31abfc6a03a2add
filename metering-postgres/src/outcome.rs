//! Whether a transaction was committed whose `COMMIT` got no answer.
//!
//! Each transaction writes a row with an id of its own. To ask, that row is inserted again: if it is there, or arrives
//! while the insert waits for the transaction that holds it, the transaction was committed. If the insert succeeds, it
//! was not, and never will be: wherever its statements may still be, theirs fails on the row that is there now.

use std::time::Duration;

use deadpool_postgres::{GenericClient, Pool};
use metering_core::{StoreError, Timestamp};

use crate::error::{Failure, Result};
use crate::retry::Tries;
use crate::rows::execute;

/// How long a lost commit is asked for. A failover takes less, or an operator has to look anyway.
const ASKED_FOR: Duration = Duration::from_secs(60);

/// How long rows are kept: much longer than anybody asks, and short enough for a busy service to have few.
pub(crate) const KEPT: Duration = Duration::from_secs(15 * 60);

pub(crate) const INSERT: &str = "INSERT INTO outcome (id, at) VALUES ($1, $2)";

/// The id of one try of a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransactionId([u8; 16]);

impl TransactionId {
    /// A new one.
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

    /// Whether it was committed; asked until there is an answer.
    ///
    /// # Errors
    /// [`StoreError::Broken`] when there is none for too long: nobody can say.
    pub(crate) async fn was_committed(&self, pool: &Pool, now: Timestamp) -> Result<bool, StoreError> {
        tracing::warn!("a commit got no answer; asking the database whether it happened");
        let mut tries = Tries::for_at_most(ASKED_FOR);
        loop {
            let failure = match self.ask(pool, now).await {
                Ok(answer) => {
                    tracing::info!(committed = answer, "the outcome of a commit without answer is known");
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            if tries.are_over() {
                let cause = StoreError::from(failure);
                return Err(StoreError::Broken(format!("whether a transaction was committed is unknown: {cause}")));
            }
            tries.wait().await;
        }
    }

    async fn ask(&self, pool: &Pool, now: Timestamp) -> Result<bool> {
        let client = pool.get().await?;
        let sql = "INSERT INTO outcome (id, at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
        let inserted = execute(&client, sql, &[&self.bytes(), &now.unix_millis()]).await?;
        Ok(inserted == 0)
    }
}
