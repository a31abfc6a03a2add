//! One try to bring the schema up to date. It ends soon where a lock cannot be had, so that nobody waits behind it for
//! long.

use std::fmt;

use metering_core::StoreError;
use tokio_postgres::error::SqlState;

use super::{DIGESTED, PACKED, SCRIPTS, check_encoding, lines, packing, supported, version};
use crate::error::{Failure, Result};
use crate::rows::{execute, one};
use crate::session::{Client, GenericClient, Pool, Transaction};
use crate::wait::{REPORT_WAIT, within};

/// The one table that is there before all others. Its row is the lock.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS metering_schema (id SMALLINT PRIMARY KEY CHECK (id = 1), \
     version BIGINT NOT NULL); \
     INSERT INTO metering_schema (id, version) VALUES (1, 0) ON CONFLICT (id) DO NOTHING";

/// How long a script waits for those who use a table that it changes. All others wait behind it meanwhile, the charges
/// of nodes of the earlier version among them.
const TABLE_WAIT: &str = "SET LOCAL lock_timeout = '2s'";

/// How a try ended that did not fail.
#[derive(Debug)]
pub(super) enum Attempt {
    Done,
    /// Somebody holds what it needs.
    Held(Holder, Failure),
}

/// Who is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// A node that is at the schema.
    Node,
    /// Whoever reads a table that is to be changed.
    Reader,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "another node brings the schema up to date",
            Self::Reader => "a backup or a long query holds a table of the earlier schema",
        })
    }
}

/// Each step has its time, and not all of them together: how long it takes depends on what there is.
pub(super) async fn migrate(pool: &Pool, make: bool) -> Result<Attempt> {
    let mut client: Client = within(REPORT_WAIT, async { Ok(pool.get().await?) }).await?;
    within(REPORT_WAIT, check_encoding(&client)).await?;
    let is_made = within(REPORT_WAIT, version(&client)).await?.is_some();
    if !is_made && !make {
        let missing = "there is no metering store in this database; make one by starting a server on it, or with \
                       `metering admin account create`";
        return Err(Failure::Store(StoreError::Unavailable(missing.into())));
    }
    let transaction = within(REPORT_WAIT, async { Ok(client.transaction().await?) }).await?;
    let missing = match within(REPORT_WAIT, lock(&transaction, is_made)).await {
        Ok(missing) => missing,
        Err(failure) => return held(Holder::Node, failure),
    };
    if missing.is_empty() {
        return Ok(Attempt::Done);
    }
    match apply(&transaction, missing).await {
        Ok(()) => {}
        Err(failure) => return held(Holder::Reader, failure),
    }
    within(REPORT_WAIT, async { Ok(transaction.commit().await?) }).await?;
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

/// Keeps all others waiting, and finds the scripts that are to be run. Within the transaction, so that a database of
/// another program is left without a trace.
async fn lock(transaction: &Transaction<'_>, is_made: bool) -> Result<&'static [&'static str]> {
    if !is_made {
        transaction.batch_execute(TABLE).await?;
    }
    let row = one(transaction, "SELECT version FROM metering_schema WHERE id = 1 FOR UPDATE", &[]).await?;
    let found: i64 = row.try_get(0)?;
    let missing = usize::try_from(found).ok().and_then(|version| SCRIPTS.get(version..));
    missing.ok_or_else(|| Failure::Store(StoreError::NewerVersion { found, supported: supported() }))
}

async fn apply(transaction: &Transaction<'_>, missing: &[&str]) -> Result<()> {
    within(REPORT_WAIT, async { Ok(transaction.batch_execute(TABLE_WAIT).await?) }).await?;
    for (version, script) in (SCRIPTS.len() - missing.len() + 1..).zip(missing) {
        within(REPORT_WAIT, async { transaction.batch_execute(script).await.map_err(taken) }).await?;
        if version == PACKED {
            packing::pack_activity(transaction).await?;
        }
        if version == DIGESTED {
            lines::digest_lines(transaction).await?;
        }
    }
    within(REPORT_WAIT, async {
        execute(transaction, "UPDATE metering_schema SET version = $1 WHERE id = 1", &[&supported()]).await.map(drop)
    })
    .await
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
