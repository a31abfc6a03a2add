//! The usage report of an account: its daily totals, plus the usage that is still in its tail.

use std::collections::HashMap;

use metering_core::access::KeyNumber;
use metering_core::backend::{AccountDays, UsageSums};
use metering_core::usage::{DailyTotal, DayRange, UsageReport};
use metering_core::{AccountId, Day};
use metering_sql::ledger;

use crate::access::accounts;
use crate::charging::known::Known;
use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{all, key_number, one, unsigned};
use crate::script::Statements;

pub(crate) async fn report<C: GenericClient>(
    client: &C,
    known: &Known,
    id: &AccountId,
    days: DayRange,
) -> Result<Option<UsageReport>> {
    let Some((row, account)) = accounts::by_id(client, id).await? else { return Ok(None) };
    let sums = sums(client, row, days).await?;
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    let statements = &mut Statements(client);
    let credits_added = ledger::added_between(statements, row, days.first.start(), after_last.start()).await?;
    let mut lines = HashMap::new();
    for line in sums.lines() {
        lines.insert(line, known.line(client, line).await?);
    }
    Ok(Some(sums.report(account, credits_added, &lines)?))
}

/// The daily totals of an account in a range of days.
pub(crate) async fn days<C: GenericClient>(
    client: &C,
    known: &Known,
    id: &AccountId,
    days: DayRange,
) -> Result<Vec<DailyTotal>> {
    let Some((row, _)) = accounts::by_id(client, id).await? else { return Ok(Vec::new()) };
    let mut sums = AccountDays::default();
    for Part { day, line, key, calls, atoms } in parts(client, row, days).await? {
        sums.add(day, known.line(client, line).await?, key, calls, atoms);
    }
    Ok(sums.totals(id)?)
}

async fn sums<C: GenericClient>(client: &C, account: i64, days: DayRange) -> Result<UsageSums<i64>> {
    let mut sums = UsageSums::default();
    for Part { day, line, key, calls, atoms } in parts(client, account, days).await? {
        sums.add(day, line, key, calls, atoms);
    }
    Ok(sums)
}

/// A part of a daily total: what is in the table, or what is in the tail.
struct Part {
    day: Day,
    line: i64,
    key: KeyNumber,
    calls: u64,
    atoms: i128,
}

/// The account's usage.
async fn parts<C: GenericClient>(client: &C, account: i64, days: DayRange) -> Result<Vec<Part>> {
    let sql = "SELECT day, line, key, calls, amount FROM usage_daily WHERE account = $1 AND day BETWEEN $2 AND $3";
    let mut parts = Vec::new();
    for row in all(client, sql, &[&account, &days.first.unix_days(), &days.last.unix_days()]).await? {
        parts.push(Part {
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
        parts.extend(totals.map(|((line, key), (calls, atoms))| Part { day, line, key, calls, atoms }));
    }
    Ok(parts)
}
