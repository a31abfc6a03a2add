//! The daily totals of the report about the business, which the database adds up.

use metering_core::StoreError;
use metering_core::backend::OperationsSums;
use metering_core::usage::DayRange;
use metering_sql::sum::{SUM, wide_sum};
use metering_sql::{Executor, Result, Row, values};

/// Adds those of a range of days. In each row, one of the first three columns is set: what its sum is for.
pub(crate) async fn add_daily_totals(
    db: &mut dyn Executor,
    days: DayRange,
    sums: &mut OperationsSums<i64, i64>,
) -> Result<()> {
    let sql = format!(
        "SELECT day, line, account, sum(calls)::BIGINT, {SUM} FROM usage_daily WHERE day BETWEEN ?1 AND ?2 \
         GROUP BY GROUPING SETS ((day), (line), (account))"
    );
    let mut add = |row: &Row| {
        let (calls, atoms) = (row.get(3)?, wide_sum(row, 4)?);
        match (row.get(0)?, row.get(1)?, row.get(2)?) {
            (Some(day), None, None) => sums.add_usage_of_day(day, calls, atoms),
            (None, Some(line), None) => sums.add_usage_of_line(line, calls, atoms),
            (None, None, Some(account)) => sums.add_usage_of_account(account, calls, atoms),
            _ => return Err(StoreError::Corrupt("a daily total has no day, line or account".to_owned()).into()),
        }
        Ok(())
    };
    db.each(&sql, &values![days.first, days.last], &mut add).await
}
