//! The addresses that receive payments, and since when each has been in use.

use metering_core::Timestamp;
use metering_core::chains::Address;
use metering_core::payments::{RecipientRecord, Registration, register_recipients};
use metering_core::transfer::SourceId;
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{address, all, bytes, execute, one, timestamp};
use crate::transactions::serialized::SerializedWrite;

pub(crate) const COLUMNS: &str = "chain_id, recipient, since, store, configured_at";

/// Every recipient, by chain and address.
pub(crate) async fn list<C: GenericClient>(client: &C) -> Result<Vec<RecipientRecord>> {
    let rows = all(client, &format!("SELECT {COLUMNS} FROM recipient"), &[]).await?;
    let mut found = rows.iter().map(record).collect::<Result<Vec<_>>>()?;
    // Sorted here, since the database's integers are signed.
    found.sort_by_key(|record| (record.chain_id, record.recipient));
    Ok(found)
}

/// Registers the configured recipients.
pub(crate) async fn register(
    write: &SerializedWrite<'_>,
    configured: &[(u64, Address)],
    now: Timestamp,
) -> Result<Vec<Registration>> {
    let client = write.client();
    let store = SourceId::from_bytes(bytes(&one(client, "SELECT name FROM identity WHERE id = 1", &[]).await?, 0)?);
    let changes = register_recipients(&list(client).await?, configured, store, now);
    for record in &changes.written {
        let sql = "INSERT INTO recipient (chain_id, recipient, since, store, configured_at) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (chain_id, recipient) DO UPDATE SET since = excluded.since, store = excluded.store, \
                   configured_at = excluded.configured_at";
        let (chain_id, recipient) = (record.chain_id.cast_signed(), record.recipient.as_bytes().as_slice());
        let (since, configured_at) = (record.since.unix_millis(), record.configured_at.unix_millis());
        execute(client, sql, &[&chain_id, &recipient, &since, &record.store.as_bytes().as_slice(), &configured_at])
            .await?;
    }
    for chain_id in &changes.used_up {
        let sql = "DELETE FROM recipient WHERE chain_id = $1 AND recipient = $2";
        execute(client, sql, &[&chain_id.cast_signed(), &RecipientRecord::ANY.as_bytes().as_slice()]).await?;
    }
    Ok(changes.registrations)
}

pub(crate) fn record(row: &Row) -> Result<RecipientRecord> {
    Ok(RecipientRecord {
        chain_id: row.try_get::<_, i64>(0)?.cast_unsigned(),
        recipient: address(row, 1)?,
        since: timestamp(row, 2)?,
        store: SourceId::from_bytes(bytes(row, 3)?),
        configured_at: timestamp(row, 4)?,
    })
}
