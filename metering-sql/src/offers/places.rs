//! The nonces of wallets that pay gas. Transactions of a wallet run in nonce order, so no nonce may be skipped or assigned
//! twice.

use metering_core::backend::decision;
use metering_core::chains::Address;
use metering_core::offers::{AuthorizationId, AuthorizationRecord, GasPlace};

use crate::executor::Executor;
use crate::fault::Result;
use crate::offers::rows::{Stored, pending};
use crate::offers::stored_place::StoredPlace;
use crate::record::{self, Record, find, put, table};
use crate::row::{Reader, Row};
use crate::table::Table;
use crate::transfer::GasPlacesRecord;
use crate::value::Value;
use crate::{numbered, values};

/// Without the places that were given back, which are in a separate table ([`given_back`]).
impl Record for GasPlacesRecord {
    const TABLE: Table = table!("gas_place" by ["chain_id", "wallet"] { Own(chain_id), Own(wallet), Place(next) });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { chain_id, wallet, next, given_back: _ } = self;
        Ok(values![chain_id, wallet, StoredPlace(*next)])
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (chain_id, wallet, StoredPlace(next)) = (row.next()?, row.next()?, row.next()?);
        Ok(Self { chain_id, wallet, next, given_back: Vec::new() })
    }
}

/// The condition for the places of a wallet.
pub const OF_WALLET: &str = "WHERE chain_id = ?1 AND wallet = ?2";

/// Takes the lowest place from `?3` on that was given back.
pub const TAKE_FREE: &str = "DELETE FROM free_gas_place WHERE chain_id = ?1 AND wallet = ?2 AND nonce = ( \
       SELECT nonce FROM free_gas_place WHERE chain_id = ?1 AND wallet = ?2 AND nonce >= ?3 ORDER BY nonce LIMIT 1) \
     RETURNING nonce";

/// Inserts a place that was given back.
const FREE: &str = "INSERT INTO free_gas_place (chain_id, wallet, nonce) VALUES (?1, ?2, ?3)";

/// The query for the places of a wallet that were given back.
pub const GIVEN_BACK: &str = "SELECT nonce FROM free_gas_place WHERE chain_id = ?1 AND wallet = ?2 ORDER BY nonce";

/// The place of an authorization among the transactions of a wallet. `None` when it is not pending.
pub async fn assign(db: &mut dyn Executor, id: &AuthorizationId, wallet: Address, lowest: u64) -> Result<Option<u64>> {
    let Some(Stored { row, record, .. }) = pending(db, id).await? else { return Ok(None) };
    let lowest = GasPlace { wallet, nonce: lowest };
    if decision::keeps_gas_place(&record, lowest) {
        return Ok(record.gas.map(|place| place.nonce));
    }
    let nonce = match take_free(db, id.chain_id, lowest).await? {
        Some(nonce) => nonce,
        None => take_next(db, id.chain_id, lowest).await?,
    };
    set(db, row, Some(GasPlace { wallet, nonce })).await?;
    if let Some(left) = decision::gives_back_gas_place(&record, Some(wallet)) {
        give_back(db, id.chain_id, left).await?;
    }
    Ok(Some(nonce))
}

async fn take_free(db: &mut dyn Executor, chain_id: u64, lowest: GasPlace) -> Result<Option<u64>> {
    let rows = db.query(TAKE_FREE, &values![chain_id, lowest.wallet, lowest.nonce.to_be_bytes()]).await?;
    rows.first().map(nonce).transpose()
}

/// Takes the first place from `lowest` on that no authorization ever had.
async fn take_next(db: &mut dyn Executor, chain_id: u64, lowest: GasPlace) -> Result<u64> {
    let GasPlace { wallet, nonce: lowest } = lowest;
    let places: Option<GasPlacesRecord> = find(db, OF_WALLET, &values![chain_id, wallet]).await?;
    let nonce = places.map_or(0, |places| places.next).max(lowest);
    let next = nonce.saturating_add(1);
    put(db, &[GasPlacesRecord { chain_id, wallet, next, given_back: Vec::new() }]).await?;
    Ok(nonce)
}

/// Sets the place of an authorization.
pub(crate) async fn set(db: &mut dyn Executor, row: i64, place: Option<GasPlace>) -> Result<()> {
    let (wallet, nonce) = (place.map(|place| place.wallet), place.map(|place| StoredPlace(place.nonce)));
    let row = values![row, wallet, nonce];
    numbered::set::<AuthorizationRecord>(db, &["gas_wallet", "gas_nonce"], &[row]).await.map(drop)
}

/// Gives back a place that no authorization has now.
pub(crate) async fn give_back(db: &mut dyn Executor, chain_id: u64, place: GasPlace) -> Result<()> {
    db.execute(FREE, &[values![chain_id, place.wallet, place.nonce.to_be_bytes()]]).await.map(drop)
}

/// Inserts the places of wallets, and returns of how many.
pub(crate) async fn insert(db: &mut dyn Executor, records: &[GasPlacesRecord]) -> Result<u64> {
    let written = record::insert(db, records).await?;
    let free = |GasPlacesRecord { chain_id, wallet, given_back, .. }: &GasPlacesRecord| {
        given_back.iter().map(|nonce| values![chain_id, wallet, nonce.to_be_bytes()]).collect::<Vec<_>>()
    };
    db.execute(FREE, &records.iter().flat_map(free).collect::<Vec<_>>()).await?;
    Ok(written)
}

/// The places of a wallet that were given back and not assigned again, in ascending order.
pub async fn given_back(db: &mut dyn Executor, chain_id: u64, wallet: &Address) -> Result<Vec<u64>> {
    db.query(GIVEN_BACK, &values![chain_id, wallet]).await?.iter().map(nonce).collect()
}

fn nonce(row: &Row) -> Result<u64> {
    row.get(0).map(u64::from_be_bytes)
}
