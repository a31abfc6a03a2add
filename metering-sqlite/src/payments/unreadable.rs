use metering_core::Timestamp;
use metering_core::chains::TxHash;
use metering_core::payments::{ArrivalLocation, UnreadableArrival};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, corrupt, store_error};
use crate::rows::{all, timestamp};

/// The columns that [`arrival`] reads.
pub(crate) const COLUMNS: &str = "chain_id, block, tx_hash, reason, attempts, found_at, next_attempt_at";

/// Stores an unreadable arrival; replaces an earlier record of it.
pub(crate) fn put(connection: &Connection, arrival: &UnreadableArrival) -> Result<()> {
    let UnreadableArrival { location, reason, attempts, found_at, next_attempt_at } = arrival;
    let sql = "INSERT OR REPLACE INTO unreadable_arrival \
               (chain_id, block, tx_hash, reason, attempts, found_at, next_attempt_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let values = params![
        location.chain_id.cast_signed(),
        location.block_number.cast_signed(),
        hash_column(location),
        reason,
        attempts,
        found_at.unix_millis(),
        next_attempt_at.map(Timestamp::unix_millis),
    ];
    connection.execute(sql, values).map(drop).map_err(store_error)
}

/// A chain's unreadable arrivals from a block on, ordered by block and hash.
pub(crate) fn of_chain(
    connection: &Connection,
    chain_id: u64,
    from_block: u64,
    limit: u32,
) -> Result<Vec<UnreadableArrival>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM unreadable_arrival WHERE chain_id = ?1 AND block >= ?2 ORDER BY block, tx_hash LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    all(&mut statement, params![chain_id.cast_signed(), from_block.cast_signed(), limit], arrival)
}

/// A chain's unreadable arrivals that are due for a retry, longest due first.
pub(crate) fn due(
    connection: &Connection,
    chain_id: u64,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<UnreadableArrival>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM unreadable_arrival WHERE chain_id = ?1 AND next_attempt_at <= ?2 \
         ORDER BY next_attempt_at, block, tx_hash LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    all(&mut statement, params![chain_id.cast_signed(), now.unix_millis(), limit], arrival)
}

/// Deletes the record of an unreadable arrival.
pub(crate) fn forget(connection: &Connection, location: &ArrivalLocation) -> Result<()> {
    let sql = "DELETE FROM unreadable_arrival WHERE chain_id = ?1 AND block = ?2 AND tx_hash = ?3";
    let values = params![location.chain_id.cast_signed(), location.block_number.cast_signed(), hash_column(location)];
    connection.execute(sql, values).map(drop).map_err(store_error)
}

/// Empty for a whole block.
fn hash_column(location: &ArrivalLocation) -> &[u8] {
    location.hash.as_ref().map_or(&[], |hash| hash.as_bytes().as_slice())
}

pub(crate) fn arrival(row: &Row<'_>) -> rusqlite::Result<Result<UnreadableArrival>> {
    let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
    let (chain_id, block_number, hash): (_, _, Vec<u8>) = (number(0)?, number(1)?, row.get(2)?);
    let (reason, attempts, found_at) = (row.get(3)?, row.get(4)?, timestamp(row, 5)?);
    let next_attempt_at = row.get::<_, Option<i64>>(6)?.map(Timestamp::from_unix_millis);
    let hash = match <[u8; 32]>::try_from(hash.as_slice()) {
        Ok(bytes) => Some(TxHash::from_bytes(bytes)),
        Err(_) if hash.is_empty() => None,
        Err(_) => return Ok(Err(corrupt("unreadable_arrival.tx_hash has neither 0 nor 32 bytes"))),
    };
    let location = ArrivalLocation { chain_id, block_number, hash };
    Ok(Ok(UnreadableArrival { location, reason, attempts, found_at, next_attempt_at }))
}
