//! The schema's versions: each a script, applied once and in order, by one node at a time.

mod packing;

use deadpool_postgres::{Client, Pool, Transaction};
use metering_core::StoreError;
use tokio_postgres::error::SqlState;

use crate::error::{Failure, Result};
use crate::retry::Tries;
use crate::turn::{TRIED_FOR, UNFINISHED};
use crate::wait::{REPORT_WAIT, within};

const SCRIPTS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_import.sql"),
    include_str!("migrations/0003_tail.sql"),
];

/// The version whose script leaves the packing of activity to the program.
const PACKED: usize = 3;

/// The one table that is there before all others. Its row is the lock.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS metering_schema (id SMALLINT PRIMARY KEY CHECK (id = 1), \
     version BIGINT NOT NULL); \
     INSERT INTO metering_schema (id, version) VALUES (1, 0) ON CONFLICT (id) DO NOTHING";

/// Brings the schema up to date, in one transaction, while other nodes wait that start at the same time.
pub(crate) async fn migrate(pool: &Pool, make: bool) -> Result<(), StoreError> {
    let mut tries = Tries::for_at_most(TRIED_FOR);
    loop {
        let failure = match try_to_migrate(pool, make).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        // Two that make the table at once: one is told that its name or its type is there already.
        if is_race(&failure) && !tries.are_over() { tries.wait().await } else { tries.again(failure).await? }
    }
}

/// Each step has its time, and not all of them together: how long it takes depends on what there is.
async fn try_to_migrate(pool: &Pool, make: bool) -> Result<()> {
    let mut client: Client = within(REPORT_WAIT, async { Ok(pool.get().await?) }).await?;
    within(REPORT_WAIT, begin(&client, make)).await?;
    let transaction = within(REPORT_WAIT, async { Ok(client.transaction().await?) }).await?;
    let missing = within(REPORT_WAIT, lock(&transaction)).await?;
    if missing.is_empty() {
        return Ok(());
    }
    for (version, script) in (SCRIPTS.len() - missing.len() + 1..).zip(missing) {
        within(REPORT_WAIT, async { transaction.batch_execute(script).await.map_err(taken) }).await?;
        if version == PACKED {
            packing::pack_activity(&transaction).await?;
        }
    }
    let supported = supported();
    within(REPORT_WAIT, async {
        transaction.execute("UPDATE metering_schema SET version = $1 WHERE id = 1", &[&supported]).await?;
        Ok(transaction.commit().await?)
    })
    .await?;
    tracing::info!(version = supported, "the schema is up to date");
    Ok(())
}

async fn begin(client: &Client, make: bool) -> Result<()> {
    if version(client).await?.is_some() {
        return Ok(());
    }
    if !make {
        let missing = "there is no metering store in this database; make one by starting a server on it, or with \
                       `metering admin account create`";
        return Err(Failure::Store(StoreError::Unavailable(missing.into())));
    }
    Ok(client.batch_execute(TABLE).await?)
}

/// Keeps all others waiting, and finds the scripts that are to be run.
async fn lock(transaction: &Transaction<'_>) -> Result<&'static [&'static str]> {
    let row = transaction.query_one("SELECT version FROM metering_schema WHERE id = 1 FOR UPDATE", &[]).await?;
    let found: i64 = row.try_get(0)?;
    let missing = usize::try_from(found).ok().and_then(|version| SCRIPTS.get(version..));
    missing.ok_or_else(|| Failure::Store(StoreError::NewerVersion { found, supported: supported() }))
}

fn supported() -> i64 {
    i64::try_from(SCRIPTS.len()).unwrap_or(i64::MAX)
}

/// Whether there is a schema.
pub(crate) async fn is_made(pool: &Pool) -> Result<bool, StoreError> {
    let client = pool.get().await.map_err(Failure::from)?;
    Ok(version(&client).await?.is_some())
}

/// Refuses a database that another store is being moved to.
pub(crate) async fn refuse_unfinished(pool: &Pool) -> Result<(), StoreError> {
    let client = pool.get().await.map_err(Failure::from)?;
    let sql = "SELECT 1 FROM turn WHERE id = 1 AND import_owner IS NOT NULL";
    match client.query_opt(sql, &[]).await.map_err(Failure::from)? {
        None => Ok(()),
        Some(_) => Err(StoreError::Unavailable(UNFINISHED.into())),
    }
}

/// The schema's version; `None` where there is none yet.
async fn version(client: &Client) -> Result<Option<i64>> {
    match client.query_opt("SELECT version FROM metering_schema WHERE id = 1", &[]).await {
        Ok(row) => Ok(row.map(|row| row.try_get(0)).transpose()?),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_race(failure: &Failure) -> bool {
    let Failure::Database(error) = failure else { return false };
    error.code() == Some(&SqlState::UNIQUE_VIOLATION) || error.code() == Some(&SqlState::DUPLICATE_OBJECT)
}

/// Tables of the same names that are not ours.
fn taken(error: tokio_postgres::Error) -> Failure {
    if error.code() == Some(&SqlState::DUPLICATE_TABLE) {
        let what = error.as_db_error().map_or("a table", |error| error.message());
        return Failure::Store(StoreError::Corrupt(format!(
            "the database has tables of another program ({what}); choose another database or schema"
        )));
    }
    error.into()
}
