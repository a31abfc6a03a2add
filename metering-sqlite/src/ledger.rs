//! The ledger, and what its entries do to an account's totals.

use metering_core::{AccountId, Credits, Cursor, LedgerEntry, NewLedgerEntry, Page, Posted, Timestamp, Totals};
use rusqlite::{Connection, params};

use crate::accounts;
use crate::activity::ledger_kind;
use crate::cache::newest_in_sequence;
use crate::error::{Result, corrupt, store_error};
use crate::rows::{all, parse};

/// `totals` after one more entry; `None` on overflow.
fn with_entry(totals: Totals, entry: &NewLedgerEntry) -> Option<Totals> {
    let balance = totals.balance.checked_add(entry.amount)?;
    if entry.kind.is_purchase() {
        Some(Totals { balance, purchased: totals.purchased.checked_add(entry.amount)?, ..totals })
    } else {
        Some(Totals { balance, granted: totals.granted.checked_add(entry.amount)?, ..totals })
    }
}

/// What a new account with these entries has; `None` on overflow.
pub(crate) fn totals_of(entries: &[NewLedgerEntry]) -> Option<Totals> {
    entries.iter().try_fold(Totals::default(), with_entry)
}

/// Writes an entry and moves the account's totals along.
pub(crate) fn post(connection: &Connection, id: &AccountId, entry: &NewLedgerEntry, now: Timestamp) -> Result<Posted> {
    let (row, mut account) = match accounts::by_id(connection, id)? {
        Some((row, account)) if account.revoked_at.is_none() => (row, account),
        _ => return Ok(Posted::NoSuchAccount),
    };
    let Some(totals) = with_entry(account.totals, entry) else { return Ok(Posted::OutOfRange) };
    append(connection, row, entry, now)?;
    let sql = "UPDATE meter SET balance = ?2, purchased = ?3, granted = ?4 WHERE account = ?1";
    let values = [row, totals.balance.atoms(), totals.purchased.atoms(), totals.granted.atoms()];
    connection.execute(sql, values).map_err(store_error)?;
    account.totals = totals;
    Ok(Posted::Account(account))
}

/// Writes an entry only; the caller has the totals.
pub(crate) fn append(connection: &Connection, account: i64, entry: &NewLedgerEntry, now: Timestamp) -> Result<()> {
    let id = newest_in_sequence(connection)? + 1;
    let sql = "INSERT INTO ledger (id, account, kind, amount, description, created_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (kind, amount) = (entry.kind.as_str(), entry.amount.atoms());
    let values = params![id, account, kind, amount, entry.description, now.unix_millis()];
    connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).map(drop).map_err(store_error)
}

/// Entries of all accounts after an id, at most `limit`.
pub(crate) fn page(connection: &Connection, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>> {
    let sql = "SELECT l.id, a.org_id, l.kind, l.amount, l.description, l.created_at \
               FROM ledger l JOIN account a ON a.id = l.account WHERE l.id > ?1 ORDER BY l.id LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = all(&mut statement, [row_of_cursor(after)?, i64::from(limit)], |row| {
        let id: i64 = row.get(0)?;
        let (org_id, kind): (String, String) = (row.get(1)?, row.get(2)?);
        let amount = Credits::from_atoms(row.get(3)?);
        let description = row.get(4)?;
        let created_at = Timestamp::from_unix_millis(row.get(5)?);
        let read = || {
            let (account, kind) = (parse(&org_id)?, ledger_kind(&kind)?);
            Ok((id, LedgerEntry { id, account, kind, amount, description, created_at }))
        };
        Ok(read())
    })?;
    Ok(page_of_rows(rows, limit))
}

/// The sum of an account's entries written in a stretch of time.
pub(crate) fn added_between(
    connection: &Connection,
    account: i64,
    from: Timestamp,
    until: Timestamp,
) -> Result<Credits> {
    let sql = "SELECT coalesce(sum(amount), 0) FROM ledger WHERE account = ?1 AND created_at >= ?2 AND created_at < ?3";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let values = [account, from.unix_millis(), until.unix_millis()];
    statement.query_row(values, |row| row.get(0)).map(Credits::from_atoms).map_err(store_error)
}

/// The row number that a cursor of this backend stands for: the last one seen, 0 at the start.
pub(crate) fn row_of_cursor(cursor: Option<&Cursor>) -> Result<i64> {
    cursor.map_or(Ok(0), |cursor| {
        cursor.as_str().parse().map_err(|_| corrupt("a cursor that is not of this store was handed in"))
    })
}

/// A page of rows with their numbers; a full one has a next.
pub(crate) fn page_of_rows<T>(rows: Vec<(i64, T)>, limit: u32) -> Page<T> {
    let full = rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let next = rows.last().filter(|_| full).map(|(row, _)| Cursor::new(row.to_string()));
    Page { items: rows.into_iter().map(|(_, item)| item).collect(), next }
}
