//! How far each chain has been scanned for payments.

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{execute, first};
use crate::transactions::serialized::SerializedWrite;

/// The last scanned block of a chain, if any.
pub(crate) async fn of_chain<C: GenericClient>(client: &C, chain_id: u64) -> Result<Option<u64>> {
    let row = first(client, "SELECT block FROM scan_mark WHERE chain_id = $1", &[&chain_id.cast_signed()]).await?;
    Ok(row.map(|row| row.try_get::<_, i64>(0)).transpose()?.map(i64::cast_unsigned))
}

/// Advances the mark of a chain, and never moves it back. Compares here, because the database's integers are signed.
pub(crate) async fn advance(write: &SerializedWrite<'_>, chain_id: u64, block: u64) -> Result<()> {
    let client = write.client();
    if of_chain(client, chain_id).await?.is_some_and(|mark| mark >= block) {
        return Ok(());
    }
    let sql = "INSERT INTO scan_mark (chain_id, block) VALUES ($1, $2) \
               ON CONFLICT (chain_id) DO UPDATE SET block = excluded.block";
    execute(client, sql, &[&chain_id.cast_signed(), &block.cast_signed()]).await.map(drop)
}
