//! Arrivals that could not be read.

use metering_core::Timestamp;
use metering_core::chains::TxHash;
use metering_core::payments::{ArrivalLocation, UnreadableArrival};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{Record, delete, list, table};
use crate::row::Reader;
use crate::table::Table;
use crate::value::Value;
use crate::{record, values};

impl Record for UnreadableArrival {
    const TABLE: Table = table!("unreadable_arrival" by ["chain_id", "block", "tx_hash"] {
        Own(chain_id), Own(block), Own(tx_hash), Own(reason), Own(attempts), Own(found_at), Own(next_attempt_at)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { location, reason, attempts, found_at, next_attempt_at } = self;
        let hash = hash_column(location);
        Ok(values![location.chain_id, location.block_number, hash, reason, attempts, found_at, next_attempt_at])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (chain_id, block_number, hash): (_, _, Vec<u8>) = (row.next()?, row.next()?, row.next()?);
        let hash = match <[u8; 32]>::try_from(hash.as_slice()) {
            Ok(bytes) => Some(TxHash::from_bytes(bytes)),
            Err(_) if hash.is_empty() => None,
            Err(_) => return Err(row.corrupt("has neither 0 nor 32 bytes")),
        };
        Ok(Self {
            location: ArrivalLocation { chain_id, block_number, hash },
            reason: row.next()?,
            attempts: row.next()?,
            found_at: row.next()?,
            next_attempt_at: row.next()?,
        })
    }
}

/// Stores an unreadable arrival; replaces an earlier record of it.
pub async fn put(db: &mut dyn Executor, arrival: &UnreadableArrival) -> Result<()> {
    record::put(db, std::slice::from_ref(arrival)).await.map(drop)
}

/// A chain's unreadable arrivals from a block on, ordered by block and hash.
pub async fn of_chain(db: &mut dyn Executor, chain: u64, from: u64, limit: u32) -> Result<Vec<UnreadableArrival>> {
    let rest = "WHERE chain_id = ?1 AND block >= ?2 ORDER BY block, tx_hash LIMIT ?3";
    list(db, rest, &values![chain, from, limit]).await
}

/// A chain's unreadable arrivals that are due for a retry, longest due first.
pub async fn due(db: &mut dyn Executor, chain: u64, now: Timestamp, limit: u32) -> Result<Vec<UnreadableArrival>> {
    let rest = "WHERE chain_id = ?1 AND next_attempt_at <= ?2 ORDER BY next_attempt_at, block, tx_hash LIMIT ?3";
    list(db, rest, &values![chain, now, limit]).await
}

/// Deletes the record of an unreadable arrival.
pub async fn forget(db: &mut dyn Executor, location: &ArrivalLocation) -> Result<()> {
    let key = values![location.chain_id, location.block_number, hash_column(location)];
    delete::<UnreadableArrival>(db, "WHERE chain_id = ?1 AND block = ?2 AND tx_hash = ?3", key).await.map(drop)
}

/// Empty for a whole block.
fn hash_column(location: &ArrivalLocation) -> &[u8] {
    location.hash.as_ref().map_or(&[], |hash| hash.as_bytes().as_slice())
}
