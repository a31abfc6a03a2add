//! The usage of the report about the business. Rows are added up as they are read: memory depends on
//! accounts, routes and payments, and not on how many daily totals the days have.

use metering_core::Day;
use metering_core::backend::OperationsSums;
use metering_core::usage::DayRange;
use rusqlite::{Connection, Params, Row};

use crate::error::{Result, store_error};
use crate::journal::Snapshot;

/// Daily totals, and the usage that is not folded into them yet.
pub(crate) fn add_usage(snapshot: &Snapshot<'_>, days: DayRange, sums: &mut OperationsSums<i64, i64>) -> Result<()> {
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
