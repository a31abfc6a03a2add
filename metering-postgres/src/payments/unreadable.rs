//! Arrivals that could not be read.

use metering_core::Timestamp;
use metering_core::chains::TxHash;
use metering_core::payments::{ArrivalLocation, UnreadableArrival};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::rows::{Values, all, execute, timestamp, unsigned};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`arrival`] reads.
pub(crate) const COLUMNS: &str = "chain_id, block, tx_hash, reason, attempts, found_at, next_attempt_at";

/// Stores an unreadable arrival; replaces an earlier record of it.
pub(crate) async fn put(write: &SerializedWrite<'_>, arrival: &UnreadableArrival) -> Result<()> {
    let UnreadableArrival { location, reason, attempts, found_at, next_attempt_at } = arrival;
    let sql = "INSERT INTO unreadable_arrival (chain_id, block, tx_hash, reason, attempts, found_at, next_attempt_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (chain_id, block, tx_hash) DO UPDATE SET \
               reason = excluded.reason, attempts = excluded.attempts, found_at = excluded.found_at, \
               next_attempt_at = excluded.next_attempt_at";
    let values: Values<'_> = &[
        &location.chain_id.cast_signed(),
        &location.block_number.cast_signed(),
        &hash_column(location),
        reason,
        &i64::from(*attempts),
        &found_at.unix_millis(),
        &next_attempt_at.map(Timestamp::unix_millis),
    ];
    execute(write.client(), sql, values).await.map(drop)
}

/// A chain's unreadable arrivals from a block on, ordered by block and hash.
pub(crate) async fn of_chain<C: GenericClient>(
    client: &C,
    chain_id: u64,
    from_block: u64,
    limit: u32,
) -> Result<Vec<UnreadableArrival>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM unreadable_arrival WHERE chain_id = $1 AND block >= $2 ORDER BY block, tx_hash LIMIT $3"
    );
    let values: Values<'_> = &[&chain_id.cast_signed(), &from_block.cast_signed(), &i64::from(limit)];
    all(client, &sql, values).await?.iter().map(arrival).collect()
}

/// A chain's unreadable arrivals that are due for a retry, longest due first.
pub(crate) async fn due<C: GenericClient>(
    client: &C,
    chain_id: u64,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<UnreadableArrival>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM unreadable_arrival WHERE chain_id = $1 AND next_attempt_at <= $2 \
         ORDER BY next_attempt_at, block, tx_hash LIMIT $3"
    );
    let values: Values<'_> = &[&chain_id.cast_signed(), &now.unix_millis(), &i64::from(limit)];
    all(client, &sql, values).await?.iter().map(arrival).collect()
}

/// Deletes the record of an unreadable arrival.
pub(crate) async fn forget(write: &SerializedWrite<'_>, location: &ArrivalLocation) -> Result<()> {
    let sql = "DELETE FROM unreadable_arrival WHERE chain_id = $1 AND block = $2 AND tx_hash = $3";
    let values: Values<'_> =
        &[&location.chain_id.cast_signed(), &location.block_number.cast_signed(), &hash_column(location)];
    execute(write.client(), sql, values).await.map(drop)
}

/// Empty for a whole block.
pub(crate) fn hash_column(location: &ArrivalLocation) -> &[u8] {
    location.hash.as_ref().map_or(&[], |hash| hash.as_bytes().as_slice())
}

pub(crate) fn arrival(row: &Row) -> Result<UnreadableArrival> {
    let number = |index: usize| Ok::<_, crate::error::Failure>(row.try_get::<_, i64>(index)?.cast_unsigned());
    let hash: &[u8] = row.try_get(2)?;
    let hash = match <[u8; 32]>::try_from(hash) {
        Ok(bytes) => Some(TxHash::from_bytes(bytes)),
        Err(_) if hash.is_empty() => None,
        Err(_) => return Err(corrupt("unreadable_arrival.tx_hash has neither 0 nor 32 bytes")),
    };
    Ok(UnreadableArrival {
        location: ArrivalLocation { chain_id: number(0)?, block_number: number(1)?, hash },
        reason: row.try_get(3)?,
        attempts: unsigned(row, 4)?,
        found_at: timestamp(row, 5)?,
        next_attempt_at: row.try_get::<_, Option<i64>>(6)?.map(Timestamp::from_unix_millis),
    })
}
