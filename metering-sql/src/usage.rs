//! Daily totals of usage, with what charges have not added to them yet. Charges write them in each backend's own way.

use metering_core::Day;
use metering_core::access::KeyNumber;
use metering_core::backend::OperationsSums;
use metering_core::usage::{DailyTotal, DayRange};

use crate::executor::{Executor, UsagePart};
use crate::fault::Result;
use crate::record::table;
use crate::row::Row;
use crate::sum::{SUM, wide_sum};
use crate::table::Table;
use crate::values;

const TABLE: Table = table!("usage_daily" by ["account", "day", "line", "key"] {
    Account(account), Own(day), Own(line), Own(key), Own(calls), Own(amount)
});

/// The query for the daily totals of the account `?1`.
pub const OF_ACCOUNT: &str = "SELECT day, line, key, calls, amount FROM usage_daily WHERE account = ?1 AND {of_days}";

/// A key's usage on one day, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyDay {
    /// The key.
    pub key: KeyNumber,
    /// The day.
    pub day: Day,
    /// Accepted requests.
    pub calls: u64,
    /// The charges for them, minus refunds, in atoms.
    pub atoms: i128,
}

/// Inserts daily totals of accounts that had none, and returns how many. `lines` has the numbers of their usage lines.
pub async fn insert(db: &mut dyn Executor, totals: &[DailyTotal], lines: &[i64]) -> Result<u64> {
    let values = |(total, line): (&DailyTotal, &i64)| {
        let DailyTotal { account, day, line: _, key, calls, credits_used } = total;
        values![account, day, line, key, calls, credits_used]
    };
    db.execute(&TABLE.insert(), &totals.iter().zip(lines).map(values).collect::<Vec<_>>()).await
}

/// The usage of the account with this row number in a range of days. A day, line and key may have several parts.
pub async fn of_account(db: &mut dyn Executor, account: i64, days: DayRange) -> Result<Vec<UsagePart>> {
    let part = |row: &Row| {
        let (key, calls, atoms) = (row.get(2)?, row.get(3)?, row.get::<i64>(4)?.into());
        Ok(UsagePart { day: row.get(0)?, line: row.get(1)?, key, calls, atoms })
    };
    let rows = db.query(OF_ACCOUNT, &values![account, days.first, days.last]).await?;
    let mut parts = rows.iter().map(part).collect::<Result<Vec<_>>>()?;
    let unfolded = db.unfolded_usage(Some(account)).await?;
    parts.extend(unfolded.into_iter().map(|(_, part)| part).filter(|part| days.contains(part.day)));
    Ok(parts)
}

/// The usage of these keys of an account on each day from `since` on, in any order; a day may have several parts. May
/// include other keys.
pub async fn of_keys(db: &mut dyn Executor, account: i64, keys: &[KeyNumber], since: Day) -> Result<Vec<KeyDay>> {
    let sql = format!(
        "SELECT key, day, CAST(sum(calls) AS BIGINT), {SUM} FROM usage_daily \
         WHERE account = ?1 AND {{of_days}} AND key {{in ?4}} GROUP BY key, day"
    );
    let numbers: Vec<i64> = keys.iter().map(|key| key.get().into()).collect();
    let day =
        |row: &Row| Ok(KeyDay { key: row.get(0)?, day: row.get(1)?, calls: row.get(2)?, atoms: wide_sum(row, 3)? });
    let rows = db.query(&sql, &values![account, since, i64::MAX, numbers]).await?;
    let mut days = rows.iter().map(day).collect::<Result<Vec<_>>>()?;
    let unfolded = db.unfolded_usage(Some(account)).await?.into_iter().filter(|(_, part)| part.day >= since);
    days.extend(unfolded.map(|(_, UsagePart { day, key, calls, atoms, .. })| KeyDay { key, day, calls, atoms }));
    Ok(days)
}

/// How many requests all accounts made to each usage line in a range of days, in any order; a line may have several parts.
pub async fn calls_by_line(db: &mut dyn Executor, days: DayRange) -> Result<Vec<(i64, u64)>> {
    let sql = "SELECT line, CAST(sum(calls) AS BIGINT) FROM usage_daily WHERE day BETWEEN ?1 AND ?2 GROUP BY line";
    let rows = db.query(sql, &values![days.first, days.last]).await?;
    let mut calls = rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect::<Result<Vec<_>>>()?;
    let unfolded = db.unfolded_usage(None).await?.into_iter().map(|(_, part)| part);
    calls.extend(unfolded.filter(|part| days.contains(part.day)).map(|part| (part.line, part.calls)));
    Ok(calls)
}

/// Adds the usage of all accounts in a range of days to the sums of the report about the business.
pub async fn add_all(db: &mut dyn Executor, days: DayRange, sums: &mut OperationsSums<i64, i64>) -> Result<()> {
    db.add_daily_totals(days, sums).await?;
    for (account, UsagePart { day, line, calls, atoms, .. }) in db.unfolded_usage(None).await? {
        sums.add_usage(day, account, line, calls, atoms);
    }
    Ok(())
}

/// Adds daily totals row by row, where rows need not cross a network.
pub async fn add_rows(db: &mut dyn Executor, days: DayRange, sums: &mut OperationsSums<i64, i64>) -> Result<()> {
    let sql = "SELECT day, account, line, calls, amount FROM usage_daily WHERE day BETWEEN ?1 AND ?2";
    let mut add = |row: &Row| {
        sums.add_usage(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get::<i64>(4)?.into());
        Ok(())
    };
    db.each(sql, &values![days.first, days.last], &mut add).await
}
