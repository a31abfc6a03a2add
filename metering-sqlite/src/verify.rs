//! The proof that every balance is what ledger and usage add up to.

use std::collections::HashMap;

use metering_core::{Credits, Discrepancy, Totals, Verification};
use rusqlite::Connection;

use crate::activity::ledger_kind;
use crate::error::{Result, corrupt, store_error};
use crate::rows::{all, parse};

/// One pass over each table.
const RECORDED: &str = "
    SELECT a.id, a.org_id, m.balance, m.purchased, m.granted, m.used
    FROM account a LEFT JOIN meter m ON m.account = a.id ORDER BY a.id";
const ENTRIES: &str = "SELECT account, kind, sum(amount) FROM ledger GROUP BY account, kind";
const USAGE: &str = "SELECT account, sum(amount) FROM usage_daily GROUP BY account";

/// Rows that belong to no account would be money that nobody has.
const ORPHANS: &str = "
    SELECT (SELECT count(*) FROM usage_daily WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM ledger WHERE account NOT IN (SELECT id FROM account))
         + (SELECT count(*) FROM meter WHERE account NOT IN (SELECT id FROM account))";

pub(crate) fn verify(connection: &Connection) -> Result<Verification> {
    let orphans: i64 = connection.query_row(ORPHANS, [], |row| row.get(0)).map_err(store_error)?;
    if orphans > 0 {
        return Err(corrupt(format_args!("{orphans} rows of usage or ledger belong to no account")));
    }
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

/// What ledger and usage add up to, by account; the balance is left for last.
fn sums(connection: &Connection) -> Result<HashMap<i64, Totals>> {
    let mut sums: HashMap<i64, Totals> = HashMap::new();
    let mut statement = connection.prepare_cached(ENTRIES).map_err(store_error)?;
    let entries = all(&mut statement, [], |row| {
        let (account, kind): (i64, String) = (row.get(0)?, row.get(1)?);
        let amount = Credits::from_atoms(row.get(2)?);
        Ok(ledger_kind(&kind).map(|kind| (account, kind, amount)))
    })?;
    for (account, kind, amount) in entries {
        let totals = sums.entry(account).or_default();
        let sum = if kind.is_purchase() { &mut totals.purchased } else { &mut totals.granted };
        *sum = sum.checked_add(amount).ok_or_else(|| corrupt("ledger entries add up to more than can be held"))?;
    }
    let mut statement = connection.prepare_cached(USAGE).map_err(store_error)?;
    let usage = all(&mut statement, [], |row| Ok(Ok((row.get(0)?, Credits::from_atoms(row.get(1)?)))))?;
    for (account, used) in usage {
        sums.entry(account).or_default().used = used;
    }
    Ok(sums)
}

fn discrepancies(org_id: &str, recorded: Totals, computed: Totals) -> Result<Vec<Discrepancy>> {
    let balance = computed
        .purchased
        .checked_add(computed.granted)
        .and_then(|added| added.checked_sub(computed.used))
        .ok_or_else(|| corrupt(format_args!("the records of {org_id} add up to more than can be held")))?;
    let pairs = [
        ("balance", recorded.balance, balance),
        ("purchased", recorded.purchased, computed.purchased),
        ("granted", recorded.granted, computed.granted),
        ("used", recorded.used, computed.used),
    ];
    let wrong = pairs.into_iter().filter(|(_, recorded, computed)| recorded != computed);
    wrong
        .map(|(amount, recorded, computed)| Ok(Discrepancy { account: parse(org_id)?, amount, recorded, computed }))
        .collect()
}
