//! The addresses that receive payments, and since when each has been in use.

use metering_core::Timestamp;
use metering_core::chains::Address;
use metering_core::payments::{RecipientRecord, Registration, register_recipients};
use metering_core::transfer::SourceId;
use rusqlite::{Connection, Row, params};

use crate::error::{Result, store_error};
use crate::rows::{address, all, timestamp};

pub(crate) const COLUMNS: &str = "chain_id, recipient, since, store, configured_at";

/// Every recipient, by chain and address.
pub(crate) fn list(connection: &Connection) -> Result<Vec<RecipientRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM recipient ORDER BY chain_id, recipient");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut found = all(&mut statement, [], |row| record(row).map(Ok))?;
    // Sort again: the database's integers are signed.
    found.sort_by_key(|record| (record.chain_id, record.recipient));
    Ok(found)
}

/// Registers the configured recipients.
pub(crate) fn register(
    connection: &Connection,
    configured: &[(u64, Address)],
    now: Timestamp,
) -> Result<Vec<Registration>> {
    let name = connection.query_row("SELECT name FROM identity WHERE id = 1", [], |row| row.get(0));
    let store = SourceId::from_bytes(name.map_err(store_error)?);
    let changes = register_recipients(&list(connection)?, configured, store, now);
    for record in &changes.written {
        let sql = "INSERT OR REPLACE INTO recipient (chain_id, recipient, since, store, configured_at) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![
            record.chain_id.cast_signed(),
            record.recipient.as_bytes(),
            record.since.unix_millis(),
            record.store.as_bytes(),
            record.configured_at.unix_millis(),
        ];
        connection.execute(sql, values).map_err(store_error)?;
    }
    for chain_id in &changes.used_up {
        let sql = "DELETE FROM recipient WHERE chain_id = ?1 AND recipient = ?2";
        let values = params![chain_id.cast_signed(), RecipientRecord::ANY.as_bytes()];
        connection.execute(sql, values).map_err(store_error)?;
    }
    Ok(changes.registrations)
}

pub(crate) fn record(row: &Row<'_>) -> rusqlite::Result<RecipientRecord> {
    Ok(RecipientRecord {
        chain_id: row.get::<_, i64>(0)?.cast_unsigned(),
        recipient: address(row, 1)?,
        since: timestamp(row, 2)?,
        store: SourceId::from_bytes(row.get(3)?),
        configured_at: timestamp(row, 4)?,
    })
}
