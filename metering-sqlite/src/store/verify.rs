//! Verifies that the file is sound, that every balance equals the sum of ledger, usage and open holds, that budgets counted what was
//! used, that every payment counted once, and that catalogues are those that were recorded.

mod keys;
mod payments;

use std::collections::HashMap;

use crate::access::accounts;
use crate::connection::integrity::{self, Depth};
use crate::error::{Result, corrupt, store_error};
use crate::journal::{Snapshot, Unfolded};
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{all, parse, totals};
use crate::script::Statements;
use crate::usage::activity::{self, ledger_kind};
use metering_core::backend::Books;
use metering_core::store::Verification;
use rusqlite::Connection;

/// One pass over each table.
const RECORDED: &str = "
    SELECT a.id, a.org_id, m.balance, m.purchased, m.granted, m.used, m.held
    FROM account a LEFT JOIN meter m ON m.account = a.id ORDER BY a.id";

/// Rows that belong to no account: money without an owner.
const ORPHANS: &str = "
    SELECT (SELECT count(*) FROM usage_daily WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM ledger WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM meter WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM recent_activity WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM payment WHERE account NOT IN (SELECT id FROM account))";

/// Accounts that hold their email address although it waits for verification, or do not hold it otherwise.
const MISHELD: &str = "
    SELECT count(*) FROM account
    WHERE (email IS NOT NULL AND email_credits IS NULL) <> (email_folded IS NOT NULL)";

/// Reads the journal anew: what a connection remembers of it may hide damage.
pub(crate) fn verify(connection: &Connection) -> Result<Verification> {
    let mut unfolded = Unfolded::default();
    let connection = &Snapshot::new(connection, &mut unfolded);
    integrity::check(connection, Depth::Full)?;
    let orphans: i64 = connection.query_row(ORPHANS, [], |row| row.get(0)).map_err(store_error)?;
    if orphans > 0 {
        return Err(corrupt(format_args!("{orphans} rows of usage, ledger or payments belong to no account")));
    }
    let misheld: i64 = connection.query_row(MISHELD, [], |row| row.get(0)).map_err(store_error)?;
    if misheld > 0 {
        return Err(corrupt(format_args!(
            "{misheld} accounts hold an email address that they should not, or lack theirs"
        )));
    }
    payments::verify(connection)?;
    metering_sql::now(metering_sql::prices::verify(&mut Statements::new(connection)))?;
    activity::verify(connection)?;
    let (books, mut budgets) = (books(connection)?, keys::discrepancies(connection)?);
    let unfolded = connection.unfolded()?;
    let mut statement = connection.prepare_cached(RECORDED).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    let mut verification = Verification { accounts: 0, discrepancies: Vec::new(), restarted_budgets: Vec::new() };
    while let Some(row) = rows.next().map_err(store_error)? {
        let id: i64 = row.get(0).map_err(store_error)?;
        let org_id: String = row.get(1).map_err(store_error)?;
        let recorded = unfolded.totals(id, totals(row, 2).map_err(store_error)?)?;
        let books = books.get(&id).copied().unwrap_or_default();
        verification.accounts += 1;
        verification.discrepancies.extend(books.discrepancies(&parse(&org_id)?, recorded)?);
        verification.restarted_budgets.extend(budgets.remove(&id).unwrap_or_default());
    }
    Ok(verification)
}

fn books(connection: &Snapshot<'_>) -> Result<HashMap<i64, Books>> {
    let mut books: HashMap<i64, Books> = HashMap::new();
    let entries = format!("SELECT account, kind, {SUM} FROM ledger GROUP BY account, kind");
    let mut statement = connection.prepare_cached(&entries).map_err(store_error)?;
    let entries = all(&mut statement, [], |row| {
        let (account, kind, atoms): (i64, String, _) = (row.get(0)?, row.get(1)?, wide_sum(row, 2)?);
        Ok(ledger_kind(&kind).map(|kind| (account, kind, atoms)))
    })?;
    for (account, kind, atoms) in entries {
        books.entry(account).or_default().add_entries(kind, atoms);
    }
    let usage = format!("SELECT account, {SUM} FROM usage_daily GROUP BY account");
    let mut statement = connection.prepare_cached(&usage).map_err(store_error)?;
    for (account, atoms) in all(&mut statement, [], |row| Ok(Ok((row.get(0)?, wide_sum(row, 1)?))))? {
        books.entry(account).or_default().add_usage(atoms);
    }
    let held = format!("SELECT account, {SUM} FROM hold WHERE settled_at IS NULL GROUP BY account");
    let mut statement = connection.prepare_cached(&held).map_err(store_error)?;
    for (account, atoms) in all(&mut statement, [], |row| Ok(Ok((row.get(0)?, wide_sum(row, 1)?))))? {
        books.entry(account).or_default().add_held(atoms);
    }
    let unfolded = connection.unfolded()?;
    for (account, _) in unfolded.accounts() {
        accounts::id_of(connection, account)?;
        let atoms = unfolded.usage_of(account).map(|(_, usage)| i128::from(usage.added_atoms())).sum();
        books.entry(account).or_default().add_usage(atoms);
    }
    Ok(books)
}
