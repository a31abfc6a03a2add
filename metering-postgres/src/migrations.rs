//! Schema migrations: one script per version, each applied once and in order, by one node at a time.

mod attempt;
mod lines;
mod packing;

use std::time::Duration;

use metering_core::StoreError;
use tokio_postgres::error::SqlState;

use crate::connection::session::{Client, GenericClient, Pool};
use crate::error::{Failure, Result};
use crate::rows::{exists, first, one};
use crate::transactions::retry::{Backoff, RETRY_TIMEOUT};
use attempt::Attempt;

const SCRIPTS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_import.sql"),
    include_str!("migrations/0003_tail.sql"),
    include_str!("migrations/0004_hardening.sql"),
    include_str!("migrations/0005_receipts_links_quotes.sql"),
    include_str!("migrations/0006_operators.sql"),
    include_str!("migrations/0007_keys.sql"),
    include_str!("migrations/0008_holds.sql"),
    include_str!("migrations/0009_refills.sql"),
    include_str!("migrations/0010_events.sql"),
    include_str!("migrations/0011_authorizations.sql"),
    include_str!("migrations/0012_hash_kinds.sql"),
    include_str!("migrations/0013_prices.sql"),
    include_str!("migrations/0014_volumes.sql"),
    include_str!("migrations/0015_returned_places.sql"),
    include_str!("migrations/0016_ended_keys.sql"),
];

/// After this version's script, the program packs recent activity.
const PACKED: usize = 3;

/// After this version's script, the program computes the digests of usage lines.
const DIGESTED: usize = 4;

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
            // Two nodes create the schema at once: one gets an error that a name or type already exists.
            None if is_race(&failure) && tries.wait(None).await => {}
            None => tries.again(failure).await?,
        }
    }
}

/// The schema version of this program.
pub(crate) fn supported() -> i64 {
    i64::try_from(SCRIPTS.len()).unwrap_or(i64::MAX)
}

/// The schema version of the database; `None` if there is no schema yet.
pub(crate) async fn version<C: GenericClient>(client: &C) -> Result<Option<i64>> {
    match first(client, "SELECT version FROM metering_schema WHERE id = 1", &[]).await {
        Ok(row) => Ok(row.map(|row| row.try_get(0)).transpose()?),
        Err(Failure::Database(error)) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Fails unless the database can store any text. With another encoding it would work until a route has a character that
/// the encoding lacks, and then fail whole batches of charges.
pub(crate) async fn check_encoding<C: GenericClient>(client: &C) -> Result<()> {
    let row = one(client, "SHOW server_encoding", &[]).await?;
    let encoding: &str = row.try_get(0)?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(Failure::Store(StoreError::Unavailable(
        format!(
            "the database's encoding is {encoding}, but must be UTF8; create another database with \
             `createdb --encoding UTF8 --template template0`"
        )
        .into(),
    )))
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
