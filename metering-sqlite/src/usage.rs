//! Daily totals: reports for an account, and the list for an export.

use std::collections::{BTreeMap, HashMap};

use metering_core::{
    AccountId, Credits, Cursor, DailyTotal, Day, DayRange, DayUsage, EndpointUsage, Page, UsageLine, UsageReport,
};
use rusqlite::Connection;

use crate::accounts;
use crate::activity::usage_line;
use crate::error::{Result, corrupt, store_error};
use crate::ledger;
use crate::page::{one_more_than, page};
use crate::rows::{all, parse};
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

pub(crate) fn report(connection: &Connection, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>> {
    let Some((row, account)) = accounts::by_id(connection, id)? else { return Ok(None) };
    let totals = totals(connection, row, days)?;
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    let credits_added = ledger::added_between(connection, row, days.first.start(), after_last.start())?;
    let (by_day, by_endpoint) = (by_day(&totals)?, by_endpoint(connection, &totals)?);
    Ok(Some(UsageReport { account, by_day, by_endpoint, credits_added }))
}

/// One seek per day of the window that anybody used, whatever else those days hold.
fn totals(connection: &Connection, account: i64, days: DayRange) -> Result<Vec<Total>> {
    // Apart: together, SQLite would look for them by reading the whole table.
    let used = "SELECT max(?1, coalesce((SELECT min(day) FROM usage_daily), ?1)), \
                min(?2, coalesce((SELECT max(day) FROM usage_daily), ?1))";
    let mut statement = connection.prepare_cached(used).map_err(store_error)?;
    let window = [days.first.unix_days(), days.last.unix_days()];
    let (first, last) =
        statement.query_row(window, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).map_err(store_error)?;
    let sql = "SELECT line, calls, amount FROM usage_daily WHERE day = ?1 AND account = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut totals = Vec::new();
    for day in (first..=last).rev() {
        totals.extend(all(&mut statement, [day, account], |row| {
            let sum = Sum { calls: row.get::<_, i64>(1)?.unsigned_abs(), atoms: row.get::<_, i64>(2)?.into() };
            Ok(Ok(Total { day: Day::from_unix_days(day), line: row.get(0)?, sum }))
        })?);
    }
    Ok(totals)
}

fn by_day(totals: &[Total]) -> Result<Vec<DayUsage>> {
    let mut days: BTreeMap<Day, Sum> = BTreeMap::new();
    for total in totals {
        days.entry(total.day).or_default().add(total.sum);
    }
    let day = |(day, sum): (Day, Sum)| Ok(DayUsage { day, usage_events: sum.calls, credits_used: credits(sum.atoms)? });
    days.into_iter().rev().map(day).collect()
}

fn by_endpoint(connection: &Connection, totals: &[Total]) -> Result<Vec<EndpointUsage>> {
    let mut lines: HashMap<i64, Sum> = HashMap::new();
    for total in totals {
        lines.entry(total.line).or_default().add(total.sum);
    }
    // Lines differ by source as well; a report does not.
    let mut endpoints: HashMap<_, Sum> = HashMap::new();
    for (line, sum) in lines {
        let UsageLine { route_template, http_method, .. } = usage_line(connection, line)?;
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
pub(crate) fn list(connection: &Connection, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>> {
    let [day, account, line] = place_of(after)?;
    let sql = "SELECT u.day, u.account, u.line, u.calls, u.amount, a.org_id \
               FROM usage_daily u JOIN account a ON a.id = u.account \
               WHERE (u.day, u.account, u.line) > (?1, ?2, ?3) ORDER BY u.day, u.account, u.line LIMIT ?4";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = all(&mut statement, [day, account, line, one_more_than(limit)], |row| {
        let place: [i64; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
        let calls = row.get::<_, i64>(3)?.unsigned_abs();
        let credits_used = Credits::from_atoms(row.get(4)?);
        let org_id: String = row.get(5)?;
        let read = || {
            let (account, line) = (parse(&org_id)?, usage_line(connection, place[2])?);
            Ok((place, DailyTotal { account, day: Day::from_unix_days(place[0]), line, calls, credits_used }))
        };
        Ok(read())
    })?;
    Ok(page(rows, limit, |[day, account, line]| Cursor::new(format!("{day}/{account}/{line}"))))
}

fn place_of(cursor: Option<&Cursor>) -> Result<[i64; 3]> {
    let Some(cursor) = cursor else { return Ok([i64::MIN, 0, 0]) };
    let parts: Option<Vec<i64>> = cursor.as_str().split('/').map(|part| part.parse().ok()).collect();
    let place = parts.and_then(|parts| <[i64; 3]>::try_from(parts).ok());
    place.ok_or_else(|| corrupt("a cursor that is not of this store was handed in"))
}
