//! Price versions, by number and by the time they take effect.

use std::sync::Arc;

use metering_core::Timestamp;
use metering_core::backend::decision::{self, Decided};
use metering_core::prices::{CatalogueHash, NewPriceVersion, PriceHistory, PriceNumber, PriceRecorded, PriceVersion};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::rows::{all, bytes, each, execute, first, optional_parsed, optional_timestamp, timestamp, unsigned};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`version`] reads.
pub(crate) const COLUMNS: &str = "number, hash, since, recorded_at, applied_by, cancelled_at";

/// Records a version, unless it is refused.
pub(crate) async fn record(write: &SerializedWrite<'_>, new: NewPriceVersion) -> Result<PriceRecorded> {
    let client = write.client();
    let mut versions = from(client, new.since).await?;
    let newest = format!("SELECT {COLUMNS} FROM price_version ORDER BY number DESC LIMIT 1");
    let newest = first(client, &newest, &[]).await?.as_ref().map(version).transpose()?;
    versions.extend(newest.filter(|newest| versions.iter().all(|version| version.number != newest.number)));
    let version = match decision::record_prices(&new, &PriceHistory::new(versions)) {
        Decided::Accepted(version) => version,
        Decided::Refused(refusal) => return Ok(refusal),
    };
    let sql = "INSERT INTO price_version (number, hash, since, recorded_at, applied_by, cancelled_at, catalogue) \
               VALUES ($1, $2, $3, $4, $5, NULL, $6)";
    let PriceVersion { number, hash, since, recorded_at, applied_by, .. } = &version;
    let (number, since, recorded_at) = (i64::from(number.0), since.unix_millis(), recorded_at.unix_millis());
    let applied_by = applied_by.as_ref().map(ToString::to_string);
    let hash = hash.as_bytes().as_slice();
    execute(client, sql, &[&number, &hash, &since, &recorded_at, &applied_by, &&*new.catalogue]).await?;
    Ok(PriceRecorded::Recorded(version))
}

/// The version in force at a time, and those that take effect later.
pub(crate) async fn history<C: GenericClient>(client: &C, from_time: Timestamp) -> Result<PriceHistory> {
    from(client, from_time).await.map(PriceHistory::new)
}

async fn from<C: GenericClient>(client: &C, from: Timestamp) -> Result<Vec<PriceVersion>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM price_version WHERE since > $1 OR number = (SELECT number FROM price_version \
         WHERE since <= $1 AND cancelled_at IS NULL ORDER BY since DESC, number DESC LIMIT 1)"
    );
    all(client, &sql, &[&from.unix_millis()]).await?.iter().map(version).collect()
}

/// The text of a version's catalogue.
pub(crate) async fn catalogue<C: GenericClient>(client: &C, number: PriceNumber) -> Result<Option<Arc<str>>> {
    let sql = "SELECT catalogue FROM price_version WHERE number = $1";
    let row = first(client, sql, &[&i64::from(number.0)]).await?;
    Ok(row.map(|row| row.try_get::<_, String>(0)).transpose()?.map(Into::into))
}

/// Checks that each catalogue is the text that was recorded. Nodes read it only when they begin to serve it.
pub(crate) async fn verify<C: GenericClient>(client: &C) -> Result<()> {
    each(client, "SELECT number, hash, catalogue FROM price_version", &[], |row| {
        let (number, hash): (u32, [u8; 32]) = (unsigned(row, 0)?, bytes(row, 1)?);
        if *CatalogueHash::of(row.try_get(2)?).as_bytes() != hash {
            let problem = format_args!("the catalogue of price version {number} is not the one that was recorded");
            return Err(corrupt(problem));
        }
        Ok(())
    })
    .await
}

/// Cancels a version that has not taken effect.
pub(crate) async fn cancel(
    write: &SerializedWrite<'_>,
    number: PriceNumber,
    now: Timestamp,
) -> Result<Option<PriceVersion>> {
    let sql = format!("SELECT {COLUMNS} FROM price_version WHERE number = $1");
    let row = i64::from(number.0);
    let found = first(write.client(), &sql, &[&row]).await?.as_ref().map(version).transpose()?;
    let cancelled = match decision::cancel_prices(found, now) {
        Decided::Accepted(cancelled) => cancelled,
        Decided::Refused(found) => return Ok(found),
    };
    let sql = "UPDATE price_version SET cancelled_at = $2 WHERE number = $1";
    execute(write.client(), sql, &[&row, &now.unix_millis()]).await?;
    Ok(Some(cancelled))
}

/// Reads a version.
pub(crate) fn version(row: &Row) -> Result<PriceVersion> {
    Ok(PriceVersion {
        number: PriceNumber(unsigned(row, 0)?),
        hash: CatalogueHash::from_bytes(bytes(row, 1)?),
        since: timestamp(row, 2)?,
        recorded_at: timestamp(row, 3)?,
        applied_by: optional_parsed(row, 4)?,
        cancelled_at: optional_timestamp(row, 5)?,
    })
}
