//! Whether a transaction was committed whose `COMMIT` got no answer.
//!
//! Each transaction writes a row with an id of its own. To ask, that row is inserted again. If it is there, or arrives
//! while the insert waits for the transaction that holds it, the transaction was committed. If the insert succeeds, it
//! was not, and never will be: wherever its statements may still be, theirs fails on the row that is there now. That row
//! is told apart by its time, since whoever asks may lose an answer too, and asks again.
//!
//! Asking always writes. With a synchronous standby its answer then waits until the standby has everything before it,
//! the transaction that was asked for included.

use std::time::Duration;

use metering_core::{StoreError, Timestamp};

use crate::error::{Failure, Result};
use crate::retry::Tries;
use crate::rows::{execute, one};
use crate::session::{Client, GenericClient, Pool};
use crate::store::PostgresStore;
use crate::wait::{ANSWER_WAIT, close, within};

/// How long a lost commit is asked for: longer than failovers take, those by hand among them. Only whoever is told by it
/// waits for it.
const ASKED_FOR: Duration = Duration::from_secs(5 * 60);

/// How long rows are kept: much longer than anybody asks, whose clock may be another, and short enough for a busy
/// service to have few.
pub(crate) const KEPT: Duration = Duration::from_secs(15 * 60);

const _: () = assert!(KEPT.as_secs() >= 2 * ASKED_FOR.as_secs());

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
        let mut client = pool.get().await?;
        let (committed, never) = (now.unix_millis(), now.unix_millis().saturating_add(1));
        let sql = "INSERT INTO outcome (id, at) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET at = outcome.at \
                   RETURNING at";
        let found = within(ANSWER_WAIT, async {
            if client.keeps_settings() {
                return one(&client, sql, &[&self.bytes(), &never]).await;
            }
            // A transaction of its own, whose settings have it wait for the disk.
            let transaction = client.transaction().await?;
            let row = one(&transaction, sql, &[&self.bytes(), &never]).await?;
            transaction.commit().await?;
            Ok(row)
        })
        .await;
        if found.as_ref().is_err_and(Failure::is_the_hosts) {
            close(pool, client);
        }
        Ok(found?.try_get::<_, i64>(0)? == committed)
    }
}

/// How a transaction failed.
#[derive(Debug)]
pub(crate) enum Lost<T> {
    /// It changed nothing.
    NotCommitted(Failure),
    /// Its commit got no answer; with what it answers if it happened.
    Unknown { failure: Failure, answer: T },
}

impl<T> From<Failure> for Lost<T> {
    fn from(failure: Failure) -> Self {
        Self::NotCommitted(failure)
    }
}

impl<T> Lost<T> {
    /// What a transaction came to whose commit was asked for.
    pub(crate) fn of_commit(committed: Result<()>, answer: T) -> Result<T, Self> {
        match committed {
            Ok(()) => Ok(answer),
            Err(failure) if failure.is_the_servers() => Err(Self::NotCommitted(failure)),
            Err(failure) => Err(Self::Unknown { failure, answer }),
        }
    }
}

impl PostgresStore {
    /// Ends a transaction, and what it was made on: finds out what became of it where that is unknown.
    pub(crate) async fn end<T>(
        &self,
        client: Client,
        id: TransactionId,
        now: Timestamp,
        ended: Result<T, Lost<T>>,
    ) -> Result<T> {
        let (failure, answer) = match ended {
            Ok(answer) => return Ok(answer),
            Err(Lost::NotCommitted(failure)) => (failure, None),
            Err(Lost::Unknown { failure, answer }) => (failure, Some(answer)),
        };
        if failure.is_a_loss() {
            // What was remembered may have been on another server, of which a failover knew less.
            self.known.forget();
        }
        if failure.is_the_hosts() {
            close(&self.pool, client);
        } else if answer.is_some() || !rolled_back(&client).await {
            client.close();
        }
        match answer {
            Some(answer) if id.was_committed(&self.pool, now).await? => Ok(answer),
            _ => Err(failure),
        }
    }
}

async fn rolled_back(client: &Client) -> bool {
    within(ANSWER_WAIT, async { Ok(client.batch_execute("ROLLBACK").await?) }).await.is_ok()
}
