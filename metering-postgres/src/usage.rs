//! Daily totals: reports for an account, and the list for an export.

use std::collections::{BTreeMap, HashMap};

use deadpool_postgres::GenericClient;
use metering_core::{
    AccountId, Cursor, DailyTotal, Day, DayRange, DayUsage, EndpointUsage, Page, UsageLine, UsageReport,
};

use crate::accounts;
use crate::error::{Result, corrupt};
use crate::known::Known;
use crate::ledger;
use crate::page::{one_more_than, page};
use crate::rows::{all, amount, parsed, unsigned};
use crate::sum::credits;

/// One daily total of an account.
struct Total {
    day: Day,
    line: i64,
    sum: Sum,
}

/// Calls and atoms; wide, so that refunds and charges can be added in any order.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    atoms: i128,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.atoms += other.atoms;
    }
}

pub(crate) async fn report<C: GenericClient>(
    client: &C,
    known: &Known,
    id: &AccountId,
    days: DayRange,
) -> Result<Option<UsageReport>> {
    let Some((row, account)) = accounts::by_id(client, id).await? else { return Ok(None) };
    let totals = totals(client, row, days).await?;
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    let credits_added = ledger::added_between(client, row, days.first.start(), after_last.start()).await?;
    let (by_day, by_endpoint) = (by_day(&totals)?, by_endpoint(client, known, &totals).await?);
    Ok(Some(UsageReport { account, by_day, by_endpoint, credits_added }))
}

async fn totals<C: GenericClient>(client: &C, account: i64, days: DayRange) -> Result<Vec<Total>> {
    let sql = "SELECT day, line, calls, amount FROM usage_daily WHERE account = $1 AND day BETWEEN $2 AND $3";
    let rows = all(client, sql, &[&account, &days.first.unix_days(), &days.last.unix_days()]).await?;
    let total = |row: &tokio_postgres::Row| {
        let sum = Sum { calls: unsigned(row, 2)?, atoms: row.try_get::<_, i64>(3)?.into() };
        Ok(Total { day: Day::from_unix_days(row.try_get(0)?), line: row.try_get(1)?, sum })
    };
    rows.iter().map(total).collect()
}

fn by_day(totals: &[Total]) -> Result<Vec<DayUsage>> {
    let mut days: BTreeMap<Day, Sum> = BTreeMap::new();
    for total in totals {
        days.entry(total.day).or_default().add(total.sum);
    }
    let day = |(day, sum): (Day, Sum)| Ok(DayUsage { day, usage_events: sum.calls, credits_used: credits(sum.atoms)? });
    days.into_iter().rev().map(day).collect()
}

async fn by_endpoint<C: GenericClient>(client: &C, known: &Known, totals: &[Total]) -> Result<Vec<EndpointUsage>> {
    let mut lines: HashMap<i64, Sum> = HashMap::new();
    for total in totals {
        lines.entry(total.line).or_default().add(total.sum);
    }
    // Lines differ by source as well; a report does not.
    let mut endpoints: HashMap<_, Sum> = HashMap::new();
    for (line, sum) in lines {
        let UsageLine { route_template, http_method, .. } = known.line(client, line).await?;
        endpoints.entry((route_template, http_method)).or_default().add(sum);
    }
    let endpoint = |((route_template, http_method), sum): (_, Sum)| {
        let credits_used = credits(sum.atoms)?;
        Ok(EndpointUsage { route_template, http_method, call_count: sum.calls, credits_used })
    };
    let mut endpoints = endpoints.into_iter().map(endpoint).collect::<Result<Vec<_>>>()?;
    endpoints.sort_unstable_by(|a, b| {
        let most_first = (b.credits_used, b.call_count).cmp(&(a.credits_used, a.call_count));
        most_first.then_with(|| (&a.route_template, &a.http_method).cmp(&(&b.route_template, &b.http_method)))
    });
    Ok(endpoints)
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
    place.ok_or_else(|| corrupt("a cursor that is not of this store was handed in"))
}
