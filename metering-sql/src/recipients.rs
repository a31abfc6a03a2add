//! The addresses that receive payments, and since when each has been in use.

use metering_core::Timestamp;
use metering_core::chains::Address;
use metering_core::payments::{RecipientRecord, Registration, register_recipients};
use metering_core::store::SourceId;

use crate::executor::Executor;
use crate::fault::{Result, corrupt};
use crate::record::{self, put, table};
use crate::values;

table! {
    "recipient" by ["chain_id", "recipient"] of RecipientRecord {
        Own(chain_id), Own(recipient), Own(since), Own(store), Own(configured_at)
    }
}

/// Every recipient, by chain and address.
pub async fn list(db: &mut dyn Executor) -> Result<Vec<RecipientRecord>> {
    let mut found: Vec<RecipientRecord> = record::list(db, "", &[]).await?;
    // Sorted here, since the database's integers are signed.
    found.sort_by_key(|record| (record.chain_id, record.recipient));
    Ok(found)
}

/// Registers the configured recipients.
pub async fn register(
    db: &mut dyn Executor,
    configured: &[(u64, Address)],
    now: Timestamp,
) -> Result<Vec<Registration>> {
    let store = identity(db).await?;
    let changes = register_recipients(&list(db).await?, configured, store, now);
    put(db, &changes.written).await?;
    let used_up: Vec<_> = changes.used_up.iter().map(|chain| values![chain, RecipientRecord::ANY]).collect();
    db.execute("DELETE FROM recipient WHERE chain_id = ?1 AND recipient = ?2", &used_up).await?;
    Ok(changes.registrations)
}

/// The store's own id.
pub async fn identity(db: &mut dyn Executor) -> Result<SourceId> {
    let rows = db.query("SELECT name FROM identity WHERE id = 1", &[]).await?;
    rows.first().ok_or_else(|| corrupt("the store has no identity"))?.get(0)
}
