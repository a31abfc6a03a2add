//! What one account used, by day, line and key: its daily totals, plus the usage that is still in its tail.

use metering_core::Day;
use metering_core::usage::DayRange;
use metering_sql::UsagePart;

use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{all, key_number, one, unsigned};

/// The account's usage in a range of days.
pub(crate) async fn parts<C: GenericClient>(client: &C, account: i64, days: DayRange) -> Result<Vec<UsagePart>> {
    let sql = "SELECT day, line, key, calls, amount FROM usage_daily WHERE account = $1 AND day BETWEEN $2 AND $3";
    let mut parts = Vec::new();
    for row in all(client, sql, &[&account, &days.first.unix_days(), &days.last.unix_days()]).await? {
        parts.push(UsagePart {
            day: Day::from_unix_days(row.try_get(0)?),
            line: row.try_get(1)?,
            key: key_number(&row, 2)?,
            calls: unsigned(&row, 3)?,
            atoms: row.try_get::<_, i64>(4)?.into(),
        });
    }
    let tail = one(client, "SELECT tail_day, tail FROM meter WHERE account = $1", &[&account]).await?;
    let tail = Tail::of_row(&tail, 0)?;
    if let Some(day) = tail.day.map(Day::from_unix_days).filter(|day| days.contains(*day)) {
        let totals = tail.totals()?.into_iter();
        parts.extend(totals.map(|((line, key), (calls, atoms))| UsagePart { day, line, key, calls, atoms }));
    }
    Ok(parts)
}
