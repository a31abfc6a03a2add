//! The versions of the schema: the script of each, and the version that a database has.

use std::borrow::Cow;

use metering_core::StoreError;
use metering_sql::schema;
use tokio_postgres::error::SqlState;

use crate::connection::session::GenericClient;
use crate::error::{Failure, Result};
use crate::rows::{first, one};
use crate::statements::dialect;

/// The versions of this database alone.
const SCRIPTS: &[&str] = &[
    include_str!("0001_initial.sql"),
    include_str!("0002_import.sql"),
    include_str!("0003_tail.sql"),
    include_str!("0004_hardening.sql"),
    include_str!("0005_receipts_links_quotes.sql"),
    include_str!("0006_operators.sql"),
    include_str!("0007_keys.sql"),
    include_str!("0008_holds.sql"),
    include_str!("0009_refills.sql"),
    include_str!("0010_events.sql"),
    include_str!("0011_authorizations.sql"),
    include_str!("0012_hash_kinds.sql"),
    include_str!("0013_prices.sql"),
    include_str!("0014_volumes.sql"),
    include_str!("0015_returned_places.sql"),
    include_str!("0016_ended_keys.sql"),
];

/// After this version's script, the program packs recent activity.
pub(super) const PACKED: usize = 3;

/// After this version's script, the program computes the digests of usage lines.
pub(super) const DIGESTED: usize = 4;

/// The schema version of this program.
pub(crate) fn supported() -> i64 {
    i64::try_from(SCRIPTS.len() + schema::STEPS.len()).unwrap_or(i64::MAX)
}

/// The scripts of the versions after this one, each with its version.
pub(super) fn scripts_after(version: usize) -> impl Iterator<Item = (usize, Cow<'static, str>)> {
    let own = SCRIPTS.iter().map(|script| Cow::Borrowed(*script));
    let shared = schema::STEPS.iter().map(|script| Cow::Owned(dialect(script)));
    (1..).zip(own.chain(shared)).skip(version)
}

pub(super) const VERSION: &str = "SELECT version FROM metering_schema WHERE id = 1";

/// The schema version of the database; `None` if there is no schema yet.
pub(crate) async fn version<C: GenericClient>(client: &C) -> Result<Option<i64>> {
    match first(client, VERSION, &[]).await {
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
