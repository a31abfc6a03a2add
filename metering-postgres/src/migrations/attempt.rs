//! One attempt to migrate the schema. It gives up soon if it cannot get a lock, so that other statements do not queue
//! behind it for long.

use std::fmt;

use metering_core::StoreError;
use tokio_postgres::error::SqlState;

use super::schema::{DIGESTED, PACKED, VERSION, check_encoding, scripts_after, supported, version};
use super::{lines, packing};
use crate::connection::session::{Client, GenericClient, Pool, Transaction};
use crate::connection::wait::{REPORT_TIMEOUT, within};
use crate::error::{Failure, Result};
use crate::rows::{execute, one};

/// The table that is created before all others. Its row is the lock for migrations.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS metering_schema (id SMALLINT PRIMARY KEY CHECK (id = 1), \
     version BIGINT NOT NULL); \
     INSERT INTO metering_schema (id, version) VALUES (1, 0) ON CONFLICT (id) DO NOTHING";

/// How long a script waits for a table that is in use. Until then all other statements on that table queue behind it,
/// including charges of nodes that still run the earlier version.
const TABLE_LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '2s'";

/// The result of an attempt that did not fail.
#[derive(Debug)]
pub(super) enum Attempt {
    Done,
    /// Another session holds a lock that it needs.
    Held(Holder, Failure),
}

/// The session that holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// Another node that migrates the schema.
    Node,
    /// A reader of a table that the migration changes.
    Reader,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "another node is migrating the schema",
            Self::Reader => "a backup or a long query is using a table that the migration changes",
        })
    }
}

/// Each step has its own timeout, but the migration as a whole has none: its duration depends on the amount of data.
pub(super) async fn migrate(pool: &Pool, make: bool) -> Result<Attempt> {
    let mut client: Client = within(REPORT_TIMEOUT, async { Ok(pool.get().await?) }).await?;
    within(REPORT_TIMEOUT, check_encoding(&client)).await?;
    let is_made = within(REPORT_TIMEOUT, version(&client)).await?.is_some();
    if !is_made && !make {
        let missing = "there is no metering store in this database; create one by starting a server on it, or with \
                       `metering admin account create`";
        return Err(Failure::Store(StoreError::Unavailable(missing.into())));
    }
    let transaction = within(REPORT_TIMEOUT, async { Ok(client.transaction().await?) }).await?;
    let found = match within(REPORT_TIMEOUT, lock(&transaction, is_made)).await {
        Ok(found) => found,
        Err(failure) => return held(Holder::Node, failure),
    };
    if scripts_after(found).next().is_none() {
        return Ok(Attempt::Done);
    }
    match apply(&transaction, found).await {
        Ok(()) => {}
        Err(failure) => return held(Holder::Reader, failure),
    }
    within(REPORT_TIMEOUT, async { Ok(transaction.commit().await?) }).await?;
    tracing::info!(version = supported(), "the schema is up to date");
    Ok(Attempt::Done)
}

fn held(holder: Holder, failure: Failure) -> Result<Attempt> {
    match &failure {
        Failure::Database(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            Ok(Attempt::Held(holder, failure))
        }
        _ => Err(failure),
    }
}

/// Takes the lock and returns the version of the database. The lock table is created within the transaction, so that
/// nothing is left behind in another program's database.
async fn lock(transaction: &Transaction<'_>, is_made: bool) -> Result<usize> {
    if !is_made {
        transaction.batch_execute(TABLE).await?;
    }
    let row = one(transaction, &format!("{VERSION} FOR UPDATE"), &[]).await?;
    let found: i64 = row.try_get(0)?;
    let (version, supported) = (usize::try_from(found).ok().filter(|_| found <= supported()), supported());
    version.ok_or(Failure::Store(StoreError::NewerVersion { found, supported }))
}

async fn apply(transaction: &Transaction<'_>, found: usize) -> Result<()> {
    within(REPORT_TIMEOUT, async { Ok(transaction.batch_execute(TABLE_LOCK_TIMEOUT).await?) }).await?;
    for (version, script) in scripts_after(found) {
        within(REPORT_TIMEOUT, async { transaction.batch_execute(&script).await.map_err(taken) }).await?;
        if version == PACKED {
            packing::pack_activity(transaction).await?;
        }
        if version == DIGESTED {
            lines::digest_lines(transaction).await?;
        }
    }
    within(REPORT_TIMEOUT, async {
        execute(transaction, "UPDATE metering_schema SET version = $1 WHERE id = 1", &[&supported()]).await.map(drop)
    })
    .await
}

/// Maps the error for an existing table: one that has our name but is not ours.
fn taken(error: tokio_postgres::Error) -> Failure {
    if error.code() == Some(&SqlState::DUPLICATE_TABLE) {
        let what = error.as_db_error().map_or("a table", |error| error.message());
        return Failure::Store(StoreError::Corrupt(format!(
            "the database has tables of another program ({what}); choose another database or schema"
        )));
    }
    error.into()
}
