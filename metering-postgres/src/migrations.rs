//! Schema migrations: one script per version, each applied once and in order, by one node at a time.

mod attempt;
mod lines;
mod packing;
mod schema;

use std::time::Duration;

use metering_core::StoreError;
use tokio_postgres::error::SqlState;

pub(crate) use schema::{check_encoding, supported, version};

use crate::connection::session::{Client, Pool};
use crate::error::{Failure, Result};
use crate::rows::exists;
use crate::transactions::retry::{Backoff, RETRY_TIMEOUT};
use attempt::Attempt;

/// The first version that a store can be moved to.
pub(crate) const MOVABLE: i64 = 2;

/// The error while a store is being moved here.
pub(crate) const UNFINISHED: &str = "a store is being moved to this database, and the move has not finished; if it was \
     interrupted, run the same `metering admin migrate` again";

/// How long to wait for another node or for readers of a table: longer than packing and backups take.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Pause between two attempts to change a table that is being read. Longer than an attempt
/// (`attempt::TABLE_LOCK_TIMEOUT`), since all other statements queue behind a waiting one.
const TABLE_PAUSE: Duration = Duration::from_secs(4);

/// Migrates the schema to the current version in one transaction. Other nodes that start at the same time wait.
pub(crate) async fn migrate(pool: &Pool, make: bool) -> Result<(), StoreError> {
    let (mut tries, mut waits) = (Backoff::for_at_most(RETRY_TIMEOUT), Backoff::for_at_most(MIGRATION_TIMEOUT));
    let mut reported = None;
    loop {
        let (attempt, failure) = match attempt::migrate(pool, make).await {
            Ok(Attempt::Done) => return Ok(()),
            Ok(Attempt::Held(holder, failure)) => (Some(holder), failure),
            Err(failure) => (None, failure),
        };
        match attempt {
            Some(holder) => {
                if reported.replace(holder) != Some(holder) {
                    tracing::warn!("{holder}; waiting for it");
                }
                let pause = match holder {
                    attempt::Holder::Node => None,
                    attempt::Holder::Reader => Some(TABLE_PAUSE),
                };
                if !waits.wait(pause).await {
                    return Err(failure.into());
                }
                // A failure after a long wait gets its own retries.
                tries = Backoff::for_at_most(RETRY_TIMEOUT);
            }
            // Two nodes create the schema concurrently: one gets an error that a name or type already exists.
            None if is_race(&failure) && tries.wait(None).await => {}
            None => tries.again(failure).await?,
        }
    }
}

/// Fails if a store is being moved to this database.
pub(crate) async fn refuse_unfinished(client: &Client) -> Result<()> {
    match exists(client, "SELECT 1 FROM turn WHERE id = 1 AND import_owner IS NOT NULL", &[]).await? {
        false => Ok(()),
        true => Err(Failure::Store(StoreError::Unavailable(UNFINISHED.into()))),
    }
}

fn is_race(failure: &Failure) -> bool {
    let Failure::Database(error) = failure else { return false };
    error.code() == Some(&SqlState::UNIQUE_VIOLATION) || error.code() == Some(&SqlState::DUPLICATE_OBJECT)
}
