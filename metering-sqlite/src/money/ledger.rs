//! The ledger, and how its entries change an account's totals.

use metering_core::backend::decision::EntryChanges;
use metering_core::backend::{credits, one_more_than, page_of_rows, row_of_cursor};
use metering_core::money::{LedgerEntry, NewLedgerEntry};
use metering_core::store::{Cursor, Page};
use metering_core::{AccountId, Credits, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, store_error};
use crate::events::outbox;
use crate::journal::Change;
use crate::journal::sequence::{newest_in_sequence, record};
use crate::money::alert;
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{all, parse, payment_ref, timestamp};
use crate::usage::activity::ledger_kind;

/// The columns that [`entry`] reads from `ledger l JOIN account a`.
pub(crate) const COLUMNS: &str = "l.id, a.org_id, l.kind, l.amount, l.description, l.created_at, l.tx_chain_id, \
     l.tx_hash, l.plan_id";

/// Writes an entry with its events, and what it adds to the account's totals. That goes through the journal, since the totals in the
/// table may be those before other changes.
pub(crate) fn write(connection: &Connection, changes: &EntryChanges<i64>) -> Result<()> {
    let EntryChanges { row, account, entry, written_at, events } = changes;
    let id = append(connection, *row, entry, *written_at)?;
    record(connection, *row, id, Change::of_entry(entry), *written_at)?;
    // The entry's row of the journal names the account, so that nobody keeps the old level.
    alert::write_level(connection, *row, account.alert.raised)?;
    events.iter().try_for_each(|event| outbox::write(connection, Some(*row), event))
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

/// Entries of all accounts after an id, at most `limit`.
pub(crate) fn list(connection: &Connection, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM ledger l JOIN account a ON a.id = l.account WHERE l.id > ?1 ORDER BY l.id LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let rows = all(&mut statement, [row_of_cursor(after)?, one_more_than(limit)], entry)?;
    Ok(page_of_rows(rows, limit))
}

/// Entries of one account after an id, at most `limit`.
pub(crate) fn list_of(
    connection: &Connection,
    account: &AccountId,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<LedgerEntry>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM ledger l JOIN account a ON a.id = l.account \
         WHERE l.account = (SELECT id FROM account WHERE org_id = ?1) AND l.id > ?2 ORDER BY l.id LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let values = params![account.as_str(), row_of_cursor(after)?, one_more_than(limit)];
    Ok(page_of_rows(all(&mut statement, values, entry)?, limit))
}

/// Reads an entry and its id.
pub(crate) fn entry(row: &Row<'_>) -> rusqlite::Result<Result<(i64, LedgerEntry)>> {
    let id: i64 = row.get(0)?;
    let (org_id, kind): (String, String) = (row.get(1)?, row.get(2)?);
    let amount = Credits::from_atoms(row.get(3)?);
    let description = row.get(4)?;
    let created_at = timestamp(row, 5)?;
    let payment = payment_ref(row, 6)?;
    let read = || {
        let (account, kind) = (parse(&org_id)?, ledger_kind(&kind)?);
        Ok((id, LedgerEntry { id, account, kind, amount, description, payment, created_at }))
    };
    Ok(read())
}

/// The sum of an account's entries written in a period of time.
pub(crate) fn added_between(
    connection: &Connection,
    account: i64,
    from: Timestamp,
    until: Timestamp,
) -> Result<Credits> {
    let sql = format!("SELECT {SUM} FROM ledger WHERE account = ?1 AND created_at >= ?2 AND created_at < ?3");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let values = [account, from.unix_millis(), until.unix_millis()];
    let atoms = statement.query_row(values, |row| wide_sum(row, 0)).map_err(store_error)?;
    credits(atoms)
}
