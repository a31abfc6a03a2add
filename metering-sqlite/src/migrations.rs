//! Schema migrations: one step per version, each applied once and in order.

mod packing;

use metering_core::StoreError;
use metering_sql::schema;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Result, commit_error, store_error};
use crate::script::dialect;

/// Marks the file as ours ("Mtr1"), so that another program's database is never migrated.
const APPLICATION_ID: i32 = 0x4d74_7231;

type Step = fn(&Connection) -> Result<()>;

/// The versions of this database alone. Those of [`schema::STEPS`] follow.
const STEPS: &[Step] = &[
    |connection| run(connection, include_str!("migrations/0001_initial.sql")),
    |connection| run(connection, include_str!("migrations/0002_payments.sql")),
    |connection| run(connection, include_str!("migrations/0003_signups.sql")),
    |connection| run(connection, include_str!("migrations/0004_moving.sql")),
    |connection| run(connection, include_str!("migrations/0005_hardening.sql")),
    |connection| {
        run(connection, include_str!("migrations/0006_journal.sql"))?;
        packing::pack_activity(connection)?;
        run(connection, include_str!("migrations/0006_packed.sql"))
    },
    |connection| run(connection, include_str!("migrations/0007_receipts_links_quotes.sql")),
    |connection| run(connection, include_str!("migrations/0008_operators.sql")),
    |connection| run(connection, include_str!("migrations/0009_keys.sql")),
    |connection| run(connection, include_str!("migrations/0010_holds.sql")),
    |connection| run(connection, include_str!("migrations/0011_refills.sql")),
    |connection| run(connection, include_str!("migrations/0012_events.sql")),
    |connection| run(connection, include_str!("migrations/0013_authorizations.sql")),
    |connection| run(connection, include_str!("migrations/0014_hash_kinds.sql")),
    |connection| run(connection, include_str!("migrations/0015_prices.sql")),
    |connection| run(connection, include_str!("migrations/0016_route_volumes.sql")),
    |connection| run(connection, include_str!("migrations/0017_returned_places.sql")),
    |connection| run(connection, include_str!("migrations/0018_ended_keys.sql")),
];

fn run(connection: &Connection, script: &str) -> Result<()> {
    connection.execute_batch(script).map_err(store_error)
}

/// Tables in the database. Those of Litestream do not count: it may open a new, empty file before we do.
const TABLES: &str = "SELECT count(*) FROM sqlite_schema WHERE name NOT GLOB '_litestream_*'";

/// Fails if the database belongs to another program. Writes nothing.
pub(crate) fn refuse_foreign(connection: &Connection) -> Result<()> {
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(store_error)?;
    let tables: i64 = connection.query_row(TABLES, [], |row| row.get(0)).map_err(store_error)?;
    if application != i64::from(APPLICATION_ID) && (application != 0 || tables > 0) {
        return Err(StoreError::Corrupt(
            "this SQLite database belongs to another program; choose another file".to_owned(),
        ));
    }
    Ok(())
}

/// The schema version of this program.
pub(crate) fn supported() -> i64 {
    i64::try_from(STEPS.len() + schema::STEPS.len()).unwrap_or(i64::MAX)
}

/// The schema version of the database; 0 if there is no schema yet.
pub(crate) fn version(connection: &Connection) -> Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(store_error)
}

/// Migrates the schema to the current version in one transaction, so that several processes can start at once.
pub(crate) fn migrate(connection: &mut Connection) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(store_error)?;
    // Check again under the lock: another program may have written to the empty file since we opened it.
    refuse_foreign(&transaction)?;
    let (version, supported) = (version(&transaction)?, supported());
    let Some(done) = usize::try_from(version).ok().filter(|_| version <= supported) else {
        return Err(StoreError::NewerVersion { found: version, supported });
    };
    if version == supported {
        return Ok(());
    }
    STEPS.iter().skip(done).try_for_each(|step| step(&transaction))?;
    let shared = schema::STEPS.iter().skip(done.saturating_sub(STEPS.len()));
    shared.into_iter().try_for_each(|script| run(&transaction, &dialect(script)))?;
    let mark = || {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", supported)
    };
    mark().map_err(store_error)?;
    transaction.commit().map_err(commit_error)
}
