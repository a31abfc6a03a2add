//! The usage of the report about the business.
//!
//! The database adds up what is in tables; usage that is still in tails is added here, row by row. The statements must
//! run on one snapshot.

use metering_core::Day;
use metering_core::backend::OperationsSums;
use metering_core::usage::DayRange;

use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::{Result, corrupt};
use crate::money::sum::{SUM, wide_sum};
use crate::rows::{each, unsigned};

/// Adds the usage in a range of days.
pub(crate) async fn add_usage<C: GenericClient>(
    client: &C,
    days: DayRange,
    sums: &mut OperationsSums<i64, i64>,
) -> Result<()> {
    daily_totals(client, days, sums).await?;
    tails(client, days, sums).await
}

/// In each row, one of the first three columns is set: what its sum is for.
async fn daily_totals<C: GenericClient>(client: &C, days: DayRange, sums: &mut OperationsSums<i64, i64>) -> Result<()> {
    let sql = format!(
        "SELECT day, line, account, sum(calls)::BIGINT, {SUM} FROM usage_daily WHERE day BETWEEN $1 AND $2 \
         GROUP BY GROUPING SETS ((day), (line), (account))"
    );
    each(client, &sql, &[&days.first.unix_days(), &days.last.unix_days()], |row| {
        let (calls, atoms) = (unsigned(row, 3)?, wide_sum(row, 4)?);
        match (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?) {
            (Some(day), None, None) => sums.add_usage_of_day(Day::from_unix_days(day), calls, atoms),
            (None, Some(line), None) => sums.add_usage_of_line(line, calls, atoms),
            (None, None, Some(account)) => sums.add_usage_of_account(account, calls, atoms),
            _ => return Err(corrupt("a daily total has no day, line or account")),
        }
        Ok(())
    })
    .await
}

/// Usage that is not folded yet.
async fn tails<C: GenericClient>(client: &C, days: DayRange, sums: &mut OperationsSums<i64, i64>) -> Result<()> {
    let sql = "SELECT account, tail_day, tail FROM meter WHERE tail_day BETWEEN $1 AND $2 AND tail <> ''";
    each(client, sql, &[&days.first.unix_days(), &days.last.unix_days()], |row| {
        let (account, tail) = (row.try_get(0)?, Tail::of_row(row, 1)?);
        let Some(day) = tail.day.map(Day::from_unix_days) else { return Ok(()) };
        for ((line, _), (calls, atoms)) in tail.totals()? {
            sums.add_usage(day, account, line, calls, atoms);
        }
        Ok(())
    })
    .await
}
