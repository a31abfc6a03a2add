//! The report about the business. Rows are added up as they are read: memory depends on accounts, routes and payments,
//! and not on how many daily totals the days have.

use std::collections::HashMap;

use metering_core::access::AgentName;
use metering_core::backend::OperationsSums;
use metering_core::operators::OperationsReport;
use metering_core::payments::PaymentRecord;
use metering_core::usage::DayRange;
use metering_core::{AccountId, Day};
use metering_sql::Record;
use rusqlite::{Connection, Params, Row};

use crate::error::{Result, corrupt, store_error};
use crate::journal::Snapshot;
use crate::rows::{first, optional_tx, parse, timestamp};
use crate::script::record;
use crate::usage::activity::{ledger_kind, usage_line};

/// By row numbers of accounts and usage lines.
type Sums = OperationsSums<i64, i64>;

pub(crate) fn report(snapshot: &Snapshot<'_>, days: DayRange) -> Result<OperationsReport> {
    let mut sums = Sums::new(days);
    accounts(snapshot, &mut sums)?;
    usage(snapshot, days, &mut sums)?;
    ledger(snapshot, days, &mut sums)?;
    payments(snapshot, days, &mut sums)?;
    let names = sums.top_accounts().into_iter().map(|row| Ok((row, name(snapshot, row)?)));
    let names = names.collect::<Result<HashMap<_, _>>>()?;
    let lines = sums.lines().map(|line| Ok((line, usage_line(snapshot, line)?)));
    let lines = lines.collect::<Result<HashMap<_, _>>>()?;
    sums.report(&names, &lines)
}

fn accounts(connection: &Connection, sums: &mut Sums) -> Result<()> {
    each(connection, "SELECT created_at FROM account", [], |row| {
        sums.add_accounts(timestamp(row, 0)?.day(), 1);
        Ok(Ok(()))
    })
}

/// Daily totals, and the usage that is not folded into them yet.
fn usage(snapshot: &Snapshot<'_>, days: DayRange, sums: &mut Sums) -> Result<()> {
    let sql = "SELECT day, account, line, calls, amount FROM usage_daily WHERE day BETWEEN ?1 AND ?2";
    each(snapshot, sql, [days.first.unix_days(), days.last.unix_days()], |row| {
        let (calls, atoms) = (row.get::<_, i64>(3)?.unsigned_abs(), row.get::<_, i64>(4)?);
        sums.add_usage(Day::from_unix_days(row.get(0)?), row.get(1)?, row.get(2)?, calls, atoms.into());
        Ok(Ok(()))
    })?;
    let unfolded = snapshot.unfolded()?;
    for (account, _) in unfolded.accounts() {
        for (day, usage) in unfolded.usage_of(account) {
            sums.add_usage(day, account, usage.line(), usage.added_calls(), usage.added_atoms().into());
        }
    }
    Ok(())
}

fn ledger(connection: &Connection, days: DayRange, sums: &mut Sums) -> Result<()> {
    let sql = "SELECT created_at, kind, amount, tx_chain_id, tx_hash FROM ledger \
               WHERE created_at >= ?1 AND created_at < ?2";
    each(connection, sql, period(days), |row| {
        let (day, kind): (_, String) = (timestamp(row, 0)?.day(), row.get(1)?);
        let (atoms, tx) = (row.get::<_, i64>(2)?, optional_tx(row, 3)?);
        Ok(ledger_kind(&kind).map(|kind| sums.add_entries(day, kind, atoms.into(), tx)))
    })
}

fn payments(connection: &Connection, days: DayRange, sums: &mut Sums) -> Result<()> {
    let rest = "WHERE recorded_at >= ?1 AND recorded_at < ?2 AND settlement <> 'reversed' ORDER BY id";
    let sql = format!("{} {rest}", PaymentRecord::TABLE.select());
    each(connection, &sql, period(days), |row| Ok(record::<PaymentRecord>(row)?.map(|record| sums.add_payment(record))))
}

/// From the first millisecond of the days to the first after them.
fn period(days: DayRange) -> [i64; 2] {
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    [days.first.start().unix_millis(), after_last.start().unix_millis()]
}

fn name(connection: &Connection, row: i64) -> Result<(AccountId, AgentName)> {
    let sql = "SELECT org_id, agent_name FROM account WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let found = first(&mut statement, [row], |row| {
        let (org_id, agent_name): (String, String) = (row.get(0)?, row.get(1)?);
        let read = || Ok((parse(&org_id)?, parse(&agent_name)?));
        Ok(read())
    })?;
    found.ok_or_else(|| corrupt(format_args!("account {row} is missing")))
}

/// Passes the rows of a query to `read` one by one.
fn each(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<Result<()>>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query(params).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        read(row).map_err(store_error)??;
    }
    Ok(())
}
