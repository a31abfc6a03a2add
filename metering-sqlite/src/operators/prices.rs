//! Price versions, by number and by the time they take effect.

use std::sync::Arc;

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided};
use metering_core::operators::Actor;
use metering_core::prices::{CatalogueHash, NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded, PriceVersion};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt, store_error};
use crate::rows::{all, first, parse, timestamp};

/// The columns that [`version`] reads.
pub(crate) const COLUMNS: &str = "number, hash, since, recorded_at, applied_by, cancelled_at";

/// Records a version, unless it is refused.
pub(crate) fn record(connection: &Connection, new: &NewPriceVersion) -> Result<PriceRecorded> {
    let newest = format!("SELECT {COLUMNS} FROM price_version ORDER BY number DESC LIMIT 1");
    let mut versions = from(connection, new.since)?;
    let mut newest = connection.prepare_cached(&newest).map_err(store_error)?;
    let newest = first(&mut newest, [], version)?;
    versions.extend(newest.filter(|newest| versions.iter().all(|version| version.number != newest.number)));
    let version = match decision::record_prices(new, &PriceHistory::new(versions)) {
        Decided::Accepted(version) => version,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    insert(connection, &version, &new.catalogue)?;
    Ok(PriceRecorded::Recorded(version))
}

/// Inserts a version with its catalogue.
pub(crate) fn insert(connection: &Connection, version: &PriceVersion, catalogue: &str) -> Result<()> {
    let sql = "INSERT INTO price_version (number, hash, since, recorded_at, applied_by, cancelled_at, catalogue) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let PriceVersion { number, hash, since, recorded_at, applied_by, cancelled_at } = version;
    let values = params![
        number.0,
        hash.as_bytes(),
        since.unix_millis(),
        recorded_at.unix_millis(),
        applied_by.as_ref().map(ToString::to_string),
        cancelled_at.map(Timestamp::unix_millis),
        catalogue
    ];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// The version in force at a time, and those that take effect later.
pub(crate) fn history(connection: &Connection, from_time: Timestamp) -> Result<PriceHistory> {
    from(connection, from_time).map(PriceHistory::new)
}

fn from(connection: &Connection, from: Timestamp) -> Result<Vec<PriceVersion>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM price_version WHERE since > ?1 OR number = (SELECT number FROM price_version \
         WHERE since <= ?1 AND cancelled_at IS NULL ORDER BY since DESC, number DESC LIMIT 1)"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    all(&mut statement, [from.unix_millis()], version)
}

/// The text of a version's catalogue.
pub(crate) fn catalogue(connection: &Connection, number: PriceNumber) -> Result<Option<Arc<str>>> {
    let sql = "SELECT catalogue FROM price_version WHERE number = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    first(&mut statement, [number.0], |row| Ok(Ok(row.get::<_, String>(0)?.into())))
}

/// Checks that each catalogue is the text that was recorded. Pages that only hold the rest of a long text have nothing
/// else by which their damage would be noticed.
pub(crate) fn verify(connection: &Connection) -> Result<()> {
    let sql = "SELECT number, hash, catalogue FROM price_version";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        let read = || Ok((row.get::<_, u32>(0)?, row.get::<_, [u8; 32]>(1)?, row.get::<_, String>(2)?));
        let (number, hash, catalogue) = read().map_err(store_error)?;
        if *CatalogueHash::of(&catalogue).as_bytes() != hash {
            return Err(corrupt(format_args!(
                "the catalogue of price version {number} is not the one that was recorded"
            )));
        }
    }
    Ok(())
}

/// Cancels a version that has not taken effect.
pub(crate) fn cancel(connection: &Connection, number: PriceNumber, now: Timestamp) -> Result<Option<PriceVersion>> {
    let sql = format!("SELECT {COLUMNS} FROM price_version WHERE number = ?1");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let found = first(&mut statement, [number.0], version)?;
    let cancelled = match decision::cancel_prices(found, now) {
        Decided::Accepted(cancelled) => cancelled,
        Decided::Refused(found) => return Ok(found),
    };
    let sql = "UPDATE price_version SET cancelled_at = ?2 WHERE number = ?1";
    connection.execute(sql, params![number.0, now.unix_millis()]).map_err(store_error)?;
    Ok(Some(cancelled))
}

/// Reads a version.
pub(crate) fn version(row: &Row<'_>) -> rusqlite::Result<Result<PriceVersion>> {
    let number = PriceNumber(row.get(0)?);
    let hash = CatalogueHash::from_bytes(row.get(1)?);
    let (since, recorded_at) = (timestamp(row, 2)?, timestamp(row, 3)?);
    let actor: Option<String> = row.get(4)?;
    let cancelled_at = row.get::<_, Option<i64>>(5)?.map(Timestamp::from_unix_millis);
    let applied_by = actor.as_deref().map(parse::<Actor>).transpose();
    Ok(applied_by.map(|applied_by| PriceVersion { number, hash, since, recorded_at, applied_by, cancelled_at }))
}
