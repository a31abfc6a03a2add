//! The usage report of an account: its daily totals, plus the usage that is still in its tail.

use std::collections::HashMap;

use metering_core::backend::UsageSums;
use metering_core::usage::{DayRange, UsageReport};
use metering_core::{AccountId, Day};

use crate::access::accounts;
use crate::charging::known::Known;
use crate::charging::tail::Tail;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::money::ledger;
use crate::rows::{all, one, unsigned};

pub(crate) async fn report<C: GenericClient>(
    client: &C,
    known: &Known,
    id: &AccountId,
    days: DayRange,
) -> Result<Option<UsageReport>> {
    let Some((row, account)) = accounts::by_id(client, id).await? else { return Ok(None) };
    let sums = sums(client, row, days).await?;
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    let credits_added = ledger::added_between(client, row, days.first.start(), after_last.start()).await?;
    let mut lines = HashMap::new();
    for line in sums.lines() {
        lines.insert(line, known.line(client, line).await?);
    }
    Ok(Some(sums.report(account, credits_added, &lines)?))
}

async fn sums<C: GenericClient>(client: &C, account: i64, days: DayRange) -> Result<UsageSums<i64>> {
    let sql = "SELECT day, line, calls, amount FROM usage_daily WHERE account = $1 AND day BETWEEN $2 AND $3";
    let mut sums = UsageSums::default();
    for row in all(client, sql, &[&account, &days.first.unix_days(), &days.last.unix_days()]).await? {
        let atoms: i64 = row.try_get(3)?;
        sums.add(Day::from_unix_days(row.try_get(0)?), row.try_get(1)?, unsigned(&row, 2)?, atoms.into());
    }
    let tail = one(client, "SELECT tail_day, tail FROM meter WHERE account = $1", &[&account]).await?;
    let tail = Tail::of_row(&tail, 0)?;
    if let Some(day) = tail.day.map(Day::from_unix_days).filter(|day| days.contains(*day)) {
        for (line, (calls, atoms)) in tail.totals()? {
            sums.add(day, line, calls, atoms);
        }
    }
    Ok(sums)
}
