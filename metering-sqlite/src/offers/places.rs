//! The places of wallets that pay gas. A wallet's transactions run in the order of their places, so none is left out
//! and none is assigned twice.

use metering_core::backend::decision;
use metering_core::chains::Address;
use metering_core::offers::{AuthorizationId, GasPlace};
use metering_core::transfer::GasPlacesRecord;
use rusqlite::{Connection, Row, params};

use crate::error::{Result, store_error};
use crate::offers::rows::pending;
use crate::rows::{address, all, first};

/// The columns that [`record`] reads from `gas_place`.
pub(crate) const COLUMNS: &str = "chain_id, wallet, next";

/// The lowest place from `?3` on that was given back.
const LOWEST_FREE: &str =
    "SELECT nonce FROM free_gas_place WHERE chain_id = ?1 AND wallet = ?2 AND nonce >= ?3 ORDER BY nonce LIMIT 1";

const GIVEN_BACK: &str = "SELECT nonce FROM free_gas_place WHERE chain_id = ?1 AND wallet = ?2 ORDER BY nonce";

const NEXT: &str = "SELECT next FROM gas_place WHERE chain_id = ?1 AND wallet = ?2";

/// The place of an authorization among the transactions of a wallet. `None` when it is not pending.
pub(crate) fn assign(
    connection: &Connection,
    id: &AuthorizationId,
    wallet: Address,
    lowest: u64,
) -> Result<Option<u64>> {
    let Some((row, record)) = pending(connection, id)? else { return Ok(None) };
    let lowest = GasPlace { wallet, nonce: lowest };
    if decision::keeps_gas_place(&record, lowest) {
        return Ok(record.gas.map(|place| place.nonce));
    }
    let place = take(connection, id.chain_id, lowest)?;
    set(connection, row, Some(place))?;
    if let Some(left) = decision::gives_back_gas_place(&record, Some(wallet)) {
        give_back(connection, id.chain_id, left)?;
    }
    Ok(Some(place.nonce))
}

/// Takes the lowest place from `lowest` on that was given back, or else the next one of the wallet.
fn take(connection: &Connection, chain_id: u64, lowest: GasPlace) -> Result<GasPlace> {
    let GasPlace { wallet, nonce: lowest } = lowest;
    let of_wallet = (chain_id.cast_signed(), wallet.as_bytes());
    let mut statement = connection.prepare_cached(LOWEST_FREE).map_err(store_error)?;
    let free = first(&mut statement, (of_wallet.0, of_wallet.1, lowest.to_be_bytes()), |row| nonce(row, 0).map(Ok))?;
    if let Some(nonce) = free {
        let sql = "DELETE FROM free_gas_place WHERE chain_id = ?1 AND wallet = ?2 AND nonce = ?3";
        let values = (of_wallet.0, of_wallet.1, nonce.to_be_bytes());
        connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
        return Ok(GasPlace { wallet, nonce });
    }
    let mut statement = connection.prepare_cached(NEXT).map_err(store_error)?;
    let next = first(&mut statement, of_wallet, |row| row.get(0).map(i64::cast_unsigned).map(Ok))?;
    let nonce = next.unwrap_or_default().max(lowest);
    let sql = "INSERT INTO gas_place (chain_id, wallet, next) VALUES (?1, ?2, ?3) \
               ON CONFLICT (chain_id, wallet) DO UPDATE SET next = excluded.next";
    let values = (of_wallet.0, of_wallet.1, nonce.saturating_add(1).cast_signed());
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    Ok(GasPlace { wallet, nonce })
}

/// Sets the place of an authorization.
pub(super) fn set(connection: &Connection, row: i64, place: Option<GasPlace>) -> Result<()> {
    let sql = "UPDATE payment_authorization SET gas_wallet = ?2, gas_nonce = ?3 WHERE id = ?1";
    let (wallet, nonce) = place.map(|GasPlace { wallet, nonce }| (wallet, nonce.cast_signed())).unzip();
    let values = params![row, wallet.as_ref().map(|wallet| wallet.as_bytes()), nonce];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// Gives back a place that no authorization has now.
pub(super) fn give_back(connection: &Connection, chain_id: u64, place: GasPlace) -> Result<()> {
    let sql = "INSERT INTO free_gas_place (chain_id, wallet, nonce) VALUES (?1, ?2, ?3)";
    let values = params![chain_id.cast_signed(), place.wallet.as_bytes(), place.nonce.to_be_bytes()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// The places of a wallet that were given back and not assigned again, in ascending order.
pub(crate) fn given_back(connection: &Connection, chain_id: u64, wallet: Address) -> Result<Vec<u64>> {
    let mut statement = connection.prepare_cached(GIVEN_BACK).map_err(store_error)?;
    all(&mut statement, params![chain_id.cast_signed(), wallet.as_bytes()], |row| nonce(row, 0).map(Ok))
}

/// Reads the places of a wallet. Those that were given back are in another table ([`given_back`]).
pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<GasPlacesRecord> {
    let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
    Ok(GasPlacesRecord { chain_id: number(0)?, wallet: address(row, 1)?, next: number(2)?, given_back: Vec::new() })
}

fn nonce(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    row.get(index).map(u64::from_be_bytes)
}

/// The queries whose plans are tested, with a step of each plan.
#[cfg(test)]
pub(super) fn queries() -> [(String, &'static str); 3] {
    [
        (LOWEST_FREE.to_owned(), "SEARCH free_gas_place USING PRIMARY KEY (chain_id=? AND wallet=? AND nonce>?)"),
        (GIVEN_BACK.to_owned(), "SEARCH free_gas_place USING PRIMARY KEY (chain_id=? AND wallet=?)"),
        (NEXT.to_owned(), "SEARCH gas_place USING PRIMARY KEY (chain_id=? AND wallet=?)"),
    ]
}
