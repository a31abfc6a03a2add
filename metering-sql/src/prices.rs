//! Price versions, by number and by the time they take effect.

use std::sync::Arc;

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided};
use metering_core::prices::{CatalogueHash, NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded, PriceVersion};

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::record::{Record, find, insert, list, set};
use crate::row::Reader;
use crate::table::Column::{self, Own};
use crate::table::Table;
use crate::value::Value;
use crate::values;

/// The catalogue is last: most reads need only the columns before it.
const COLUMNS: &[Column] = &[
    Own("number"),
    Own("hash"),
    Own("since"),
    Own("recorded_at"),
    Own("applied_by"),
    Own("cancelled_at"),
    Own("catalogue"),
];

/// To be read only: a row needs a catalogue.
impl Record for PriceVersion {
    const TABLE: Table = Table { name: "price_version", key: &["number"], columns: COLUMNS.split_at(6).0 };

    fn values(&self) -> Result<Vec<Value>> {
        let Self { number, hash, since, recorded_at, applied_by, cancelled_at } = self;
        Ok(values![number, hash, since, recorded_at, applied_by, cancelled_at])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (number, hash, since, recorded_at) = (row.next()?, row.next()?, row.next()?, row.next()?);
        Ok(Self { number, hash, since, recorded_at, applied_by: row.next()?, cancelled_at: row.next()? })
    }
}

/// A version with the text of its catalogue.
impl Record for (PriceVersion, Arc<str>) {
    const TABLE: Table = Table { columns: COLUMNS, ..PriceVersion::TABLE };

    fn values(&self) -> Result<Vec<Value>> {
        let (version, catalogue) = self;
        let mut values = version.values()?;
        values.extend(values![&**catalogue]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        Ok((PriceVersion::read(row)?, row.next::<String>()?.into()))
    }
}

/// Records a version, unless it is refused.
pub async fn record(db: &mut dyn Executor, new: &NewPriceVersion) -> Result<PriceRecorded> {
    let mut versions = from(db, new.since).await?;
    let newest: Option<PriceVersion> = find(db, "ORDER BY number DESC LIMIT 1", &[]).await?;
    versions.extend(newest.filter(|newest| versions.iter().all(|version| version.number != newest.number)));
    let version = match decision::record_prices(new, &PriceHistory::new(versions)) {
        Decided::Accepted(version) => version,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    insert(db, &[(version.clone(), Arc::clone(&new.catalogue))]).await?;
    Ok(PriceRecorded::Recorded(version))
}

/// The version in force at a time, and those that take effect later.
pub async fn history(db: &mut dyn Executor, from_time: Timestamp) -> Result<PriceHistory> {
    from(db, from_time).await.map(PriceHistory::new)
}

async fn from(db: &mut dyn Executor, from: Timestamp) -> Result<Vec<PriceVersion>> {
    let rest = "WHERE since > ?1 OR number = (SELECT number FROM price_version \
                WHERE since <= ?1 AND cancelled_at IS NULL ORDER BY since DESC, number DESC LIMIT 1)";
    list(db, rest, &values![from]).await
}

/// The text of a version's catalogue.
pub async fn catalogue(db: &mut dyn Executor, number: PriceNumber) -> Result<Option<Arc<str>>> {
    let found: Option<(PriceVersion, _)> = find(db, "WHERE number = ?1", &values![number]).await?;
    Ok(found.map(|(_, catalogue)| catalogue))
}

/// Cancels a version that has not taken effect.
pub async fn cancel(db: &mut dyn Executor, number: PriceNumber, now: Timestamp) -> Result<Option<PriceVersion>> {
    let found = find(db, "WHERE number = ?1", &values![number]).await?;
    let cancelled = match decision::cancel_prices(found, now) {
        Decided::Accepted(cancelled) => cancelled,
        Decided::Refused(found) => return Ok(found),
    };
    set::<PriceVersion>(db, &["cancelled_at"], &[values![number, now]]).await?;
    Ok(Some(cancelled))
}

/// Checks that each catalogue is the text that was recorded. Servers read it only when they begin to serve it, and nothing
/// else would notice damage to the pages of a file that only hold the rest of a long text.
pub async fn verify(db: &mut dyn Executor) -> Result<()> {
    let mut last = PriceNumber(0);
    loop {
        // In pages, since catalogues can be long.
        let page: Vec<(PriceVersion, Arc<str>)> =
            list(db, "WHERE number > ?1 ORDER BY number LIMIT 32", &values![last]).await?;
        let Some((newest, _)) = page.last() else { return Ok(()) };
        last = newest.number;
        if let Some((changed, _)) = page.iter().find(|(version, text)| CatalogueHash::of(text) != version.hash) {
            let number = changed.number;
            return Err(corrupt(format_args!(
                "the catalogue of price version {number} is not the one that was recorded"
            )));
        }
    }
}
