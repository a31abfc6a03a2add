//! The places of the transactions that execute authorizations, among those of the wallet that pays the gas.

use metering_core::backend::decision;
use metering_core::chains::Address;
use metering_core::offers::{AuthorizationId, GasPlace};
use metering_core::transfer::GasPlacesRecord;
use tokio_postgres::Row;

use super::rows::pending;
use crate::error::{Result, corrupt};
use crate::rows::{Values, address, bytes, execute, first};
use crate::transactions::serialized::SerializedWrite;

/// The columns that [`places`] reads from `gas_place g`.
pub(crate) const COLUMNS: &str = "g.chain_id, g.wallet, g.next, ARRAY(SELECT f.nonce FROM free_gas_place f \
     WHERE f.chain_id = g.chain_id AND f.wallet = g.wallet ORDER BY f.nonce)";

/// Assigns a place in a wallet to a pending authorization, or returns the one that it keeps.
pub(crate) async fn assign(
    write: &SerializedWrite<'_>,
    id: &AuthorizationId,
    wallet: Address,
    lowest: u64,
) -> Result<Option<u64>> {
    let Some((row, record)) = pending(write, id).await? else { return Ok(None) };
    let lowest = GasPlace { wallet, nonce: lowest };
    if decision::keeps_gas_place(&record, lowest) {
        return Ok(record.gas.map(|place| place.nonce));
    }
    let nonce = match take_free(write, id.chain_id, lowest).await? {
        Some(nonce) => nonce,
        None => take_next(write, id.chain_id, lowest).await?,
    };
    set(write, row, Some(GasPlace { wallet, nonce })).await?;
    if let Some(left) = decision::gives_back_gas_place(&record, Some(wallet)) {
        give_back(write, id.chain_id, left).await?;
    }
    Ok(Some(nonce))
}

/// Takes the lowest place that was given back, from `lowest` on.
async fn take_free(write: &SerializedWrite<'_>, chain_id: u64, lowest: GasPlace) -> Result<Option<u64>> {
    let sql = "DELETE FROM free_gas_place WHERE chain_id = $1 AND wallet = $2 AND nonce = ( \
               SELECT nonce FROM free_gas_place WHERE chain_id = $1 AND wallet = $2 AND nonce >= $3 \
               ORDER BY nonce LIMIT 1) RETURNING nonce";
    let nonce = column(lowest.nonce);
    let values: Values<'_> = &[&chain_id.cast_signed(), &lowest.wallet.as_bytes().as_slice(), &nonce.as_slice()];
    let row = first(write.client(), sql, values).await?;
    row.map(|row| bytes(&row, 0).map(u64::from_be_bytes)).transpose()
}

/// Takes the first place from `lowest` on that no authorization ever had.
async fn take_next(write: &SerializedWrite<'_>, chain_id: u64, lowest: GasPlace) -> Result<u64> {
    let (client, chain_id, wallet) = (write.client(), chain_id.cast_signed(), lowest.wallet.as_bytes().as_slice());
    let sql = "SELECT next FROM gas_place WHERE chain_id = $1 AND wallet = $2";
    let next = match first(client, sql, &[&chain_id, &wallet]).await? {
        Some(row) => u64::from_be_bytes(bytes(&row, 0)?),
        None => 0,
    };
    let nonce = next.max(lowest.nonce);
    let sql = "INSERT INTO gas_place (chain_id, wallet, next) VALUES ($1, $2, $3) \
               ON CONFLICT (chain_id, wallet) DO UPDATE SET next = excluded.next";
    let next = column(nonce.saturating_add(1));
    execute(client, sql, &[&chain_id, &wallet, &next.as_slice()]).await?;
    Ok(nonce)
}

/// Sets the place of an authorization.
pub(super) async fn set(write: &SerializedWrite<'_>, row: i64, place: Option<GasPlace>) -> Result<()> {
    let sql = "UPDATE payment_authorization SET gas_wallet = $2, gas_nonce = $3 WHERE id = $1";
    let nonce = place.map(|place| column(place.nonce));
    let wallet = place.as_ref().map(|place| place.wallet.as_bytes().as_slice());
    let values: Values<'_> = &[&row, &wallet, &nonce.as_ref().map(<[u8; 8]>::as_slice)];
    execute(write.client(), sql, values).await.map(drop)
}

/// Gives a place back.
pub(super) async fn give_back(write: &SerializedWrite<'_>, chain_id: u64, place: GasPlace) -> Result<()> {
    let sql = "INSERT INTO free_gas_place (chain_id, wallet, nonce) VALUES ($1, $2, $3)";
    let nonce = column(place.nonce);
    let values: Values<'_> = &[&chain_id.cast_signed(), &place.wallet.as_bytes().as_slice(), &nonce.as_slice()];
    execute(write.client(), sql, values).await.map(drop)
}

/// A place as it is stored.
pub(crate) const fn column(nonce: u64) -> [u8; 8] {
    nonce.to_be_bytes()
}

/// Reads the places of a wallet.
pub(crate) fn places(row: &Row) -> Result<GasPlacesRecord> {
    let free: Vec<&[u8]> = row.try_get(3)?;
    let read = |nonce: &[u8]| {
        let nonce = nonce.try_into().map_err(|_| corrupt("free_gas_place.nonce has a wrong length"))?;
        Ok(u64::from_be_bytes(nonce))
    };
    Ok(GasPlacesRecord {
        chain_id: row.try_get::<_, i64>(0)?.cast_unsigned(),
        wallet: address(row, 1)?,
        next: u64::from_be_bytes(bytes(row, 2)?),
        given_back: free.into_iter().map(read).collect::<Result<_>>()?,
    })
}
