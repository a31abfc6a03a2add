//! The proof that every balance is what ledger and usage add up to, and that every payment counted once.

mod payments;

use std::collections::HashMap;

use metering_core::{Credits, Discrepancy, Totals, Verification};
use rusqlite::Connection;

use crate::activity::ledger_kind;
use crate::error::{Result, corrupt, store_error};
use crate::rows::{all, parse};
use crate::sum::{SUM, credits, wide_sum};

/// One pass over each table.
const RECORDED: &str = "
    SELECT a.id, a.org_id, m.balance, m.purchased, m.granted, m.used
    FROM account a LEFT JOIN meter m ON m.account = a.id ORDER BY a.id";

/// Rows that belong to no account would be money that nobody has.
const ORPHANS: &str = "
    SELECT (SELECT count(*) FROM usage_daily WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM ledger WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM meter WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM payment WHERE account NOT IN (SELECT id FROM account))";

pub(crate) fn verify(connection: &Connection) -> Result<Verification> {
    let orphans: i64 = connection.query_row(ORPHANS, [], |row| row.get(0)).map_err(store_error)?;
    if orphans > 0 {
        return Err(corrupt(format_args!("{orphans} rows of usage, ledger or payments belong to no account")));
    }
    payments::verify(connection)?;
    let sums = sums(connection)?;
    let mut statement = connection.prepare_cached(RECORDED).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    let mut verification = Verification { accounts: 0, discrepancies: Vec::new() };
    while let Some(row) = rows.next().map_err(store_error)? {
        let id: i64 = row.get(0).map_err(store_error)?;
        let org_id: String = row.get(1).map_err(store_error)?;
        let amount = |index| row.get(index).map(Credits::from_atoms).map_err(store_error);
        let recorded = Totals { balance: amount(2)?, purchased: amount(3)?, granted: amount(4)?, used: amount(5)? };
        let computed = sums.get(&id).copied().unwrap_or_default();
        verification.accounts += 1;
        verification.discrepancies.extend(discrepancies(&org_id, recorded, computed)?);
    }
    Ok(verification)
}

/// What ledger and usage add up to, in atoms.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    purchased: i128,
    granted: i128,
    used: i128,
}

fn sums(connection: &Connection) -> Result<HashMap<i64, Sums>> {
    let mut sums: HashMap<i64, Sums> = HashMap::new();
    let entries = format!("SELECT account, kind, {SUM} FROM ledger GROUP BY account, kind");
    let mut statement = connection.prepare_cached(&entries).map_err(store_error)?;
    let entries = all(&mut statement, [], |row| {
        let (account, kind, atoms): (i64, String, _) = (row.get(0)?, row.get(1)?, wide_sum(row, 2)?);
        Ok(ledger_kind(&kind).map(|kind| (account, kind, atoms)))
    })?;
    for (account, kind, atoms) in entries {
        let sums = sums.entry(account).or_default();
        *(if kind.is_purchase() { &mut sums.purchased } else { &mut sums.granted }) += atoms;
    }
    let usage = format!("SELECT account, {SUM} FROM usage_daily GROUP BY account");
    let mut statement = connection.prepare_cached(&usage).map_err(store_error)?;
    for (account, atoms) in all(&mut statement, [], |row| Ok(Ok((row.get(0)?, wide_sum(row, 1)?))))? {
        sums.entry(account).or_default().used = atoms;
    }
    Ok(sums)
}

fn discrepancies(org_id: &str, recorded: Totals, computed: Sums) -> Result<Vec<Discrepancy>> {
    let Sums { purchased, granted, used } = computed;
    let amounts = [
        ("balance", recorded.balance, purchased + granted - used),
        ("purchased", recorded.purchased, purchased),
        ("granted", recorded.granted, granted),
        ("used", recorded.used, used),
    ];
    let wrong = amounts.into_iter().filter(|(_, recorded, computed)| i128::from(recorded.atoms()) != *computed);
    wrong
        .map(|(amount, recorded, computed)| {
            Ok(Discrepancy { account: parse(org_id)?, amount, recorded, computed: credits(computed)? })
        })
        .collect()
}
