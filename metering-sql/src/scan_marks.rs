//! How far each chain has been scanned for payments.

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{find, put, table};
use crate::transfer::ScanMark;
use crate::values;

table! { "scan_mark" by ["chain_id"] of ScanMark { Own(chain_id), Own(block) } }

/// The last scanned block of a chain, if any.
pub async fn of_chain(db: &mut dyn Executor, chain_id: u64) -> Result<Option<u64>> {
    let mark: Option<ScanMark> = find(db, "WHERE chain_id = ?1", &values![chain_id]).await?;
    Ok(mark.map(|mark| mark.block))
}

/// Advances the mark of a chain, and never moves it back. Compares here, because the database's integers are signed.
pub async fn advance(db: &mut dyn Executor, chain_id: u64, block: u64) -> Result<()> {
    if of_chain(db, chain_id).await?.is_some_and(|mark| mark >= block) {
        return Ok(());
    }
    put(db, &[ScanMark { chain_id, block }]).await.map(drop)
}
