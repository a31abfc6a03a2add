//! Writes the ledger, and how its entries change an account's totals.

use metering_core::Timestamp;
use metering_core::backend::decision::EntryChanges;
use metering_core::money::NewLedgerEntry;
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::journal::Change;
use crate::journal::sequence::{newest_in_sequence, record};

/// Writes an entry, and adds it to the account's totals. That goes through the journal, since the totals in the table
/// may be those before other changes.
pub(crate) fn write(connection: &Connection, changes: &EntryChanges<i64>) -> Result<()> {
    let EntryChanges { row, entry, written_at, .. } = changes;
    let id = append(connection, *row, entry, *written_at)?;
    record(connection, *row, id, Change::of_entry(entry), *written_at)
}

/// Writes only the entry, and returns its id; the caller updates the totals.
pub(crate) fn append(connection: &Connection, account: i64, entry: &NewLedgerEntry, now: Timestamp) -> Result<i64> {
    let id = newest_in_sequence(connection)? + 1;
    let sql = "INSERT INTO ledger (id, account, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let (kind, amount, created_at) = (entry.kind.as_str(), entry.amount.atoms(), now.unix_millis());
    let payment = entry.payment.as_ref();
    let chain_id = payment.map(|payment| payment.tx.chain_id.cast_signed());
    let hash = payment.map(|payment| payment.tx.hash.as_bytes());
    let plan_id = payment.and_then(|payment| payment.plan_id.as_deref());
    let values = params![id, account, kind, amount, entry.description, created_at, chain_id, hash, plan_id];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map_err(store_error)?;
    Ok(id)
}
