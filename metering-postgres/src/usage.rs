//! Daily totals: reports for an account, and the list for an export.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;
use metering_core::{AccountId, Cursor, DailyTotal, Day, DayRange, Page, UsageReport};

use crate::accounts;
use crate::error::Result;
use crate::known::Known;
use crate::ledger;
use crate::rows::{all, amount, parsed, unsigned};
use metering_core::backend::{UsageSums, one_more_than, page, unknown_cursor};

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
    Ok(sums)
}

/// Daily totals of all accounts after a place, at most `limit`.
pub(crate) async fn list<C: GenericClient>(
    client: &C,
    known: &Known,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<DailyTotal>> {
    let [day, account, line] = place_of(after)?;
    let sql = "SELECT u.day, u.account, u.line, u.calls, u.amount, a.org_id \
               FROM usage_daily u JOIN account a ON a.id = u.account \
               WHERE (u.day, u.account, u.line) > ($1, $2, $3) ORDER BY u.day, u.account, u.line LIMIT $4";
    let rows = all(client, sql, &[&day, &account, &line, &one_more_than(limit)]).await?;
    let mut totals = Vec::with_capacity(rows.len());
    for row in rows {
        let place: [i64; 3] = [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?];
        let (calls, credits_used) = (unsigned(&row, 3)?, amount(&row, 4)?);
        let (account, line) = (parsed(&row, 5)?, known.line(client, place[2]).await?);
        totals.push((place, DailyTotal { account, day: Day::from_unix_days(place[0]), line, calls, credits_used }));
    }
    Ok(page(totals, limit, |[day, account, line]| Cursor::new(format!("{day}/{account}/{line}"))))
}

fn place_of(cursor: Option<&Cursor>) -> Result<[i64; 3]> {
    let Some(cursor) = cursor else { return Ok([i64::MIN, 0, 0]) };
    let parts: Option<Vec<i64>> = cursor.as_str().split('/').map(|part| part.parse().ok()).collect();
    let place = parts.and_then(|parts| <[i64; 3]>::try_from(parts).ok());
    Ok(place.ok_or_else(unknown_cursor)?)
}
