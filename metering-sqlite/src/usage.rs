//! Daily totals: reports for an account, and the list for an export.

use std::collections::HashMap;

use metering_core::{
    AccountId, Credits, Cursor, DailyTotal, Day, DayRange, DayUsage, EndpointUsage, Page, UsageLine, UsageReport,
};
use rusqlite::{Connection, params};

use crate::accounts;
use crate::activity::usage_line;
use crate::error::{Result, corrupt, store_error};
use crate::ledger;
use crate::rows::{all, parse};

/// One daily total of an account.
struct Total {
    day: Day,
    line: i64,
    calls: u64,
    credits: Credits,
}

pub(crate) fn report(connection: &Connection, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>> {
    let Some((row, account)) = accounts::by_id(connection, id)? else { return Ok(None) };
    let totals = totals(connection, row, days)?;
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    let credits_added = ledger::added_between(connection, row, days.first.start(), after_last.start())?;
    let (by_day, by_endpoint) = (by_day(&totals)?, by_endpoint(connection, &totals)?);
    Ok(Some(UsageReport { account, by_day, by_endpoint, credits_added }))
}

/// One seek per day of the window, whatever else those days hold.
fn totals(connection: &Connection, account: i64, days: DayRange) -> Result<Vec<Total>> {
    let sql = "SELECT line, calls, amount FROM usage_daily WHERE day = ?1 AND account = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut totals = Vec::new();
    for day in (days.first.unix_days()..=days.last.unix_days()).rev() {
        totals.extend(all(&mut statement, [day, account], |row| {
            let calls = row.get::<_, i64>(1)?.unsigned_abs();
            let credits = Credits::from_atoms(row.get(2)?);
            Ok(Ok(Total { day: Day::from_unix_days(day), line: row.get(0)?, calls, credits }))
        })?);
    }
    Ok(totals)
}

fn add(sum: &mut Credits, credits: Credits) -> Result<()> {
    *sum = sum.checked_add(credits).ok_or_else(|| corrupt("daily totals add up to more than can be held"))?;
    Ok(())
}

/// `totals` come newest day first, and so do the sums.
fn by_day(totals: &[Total]) -> Result<Vec<DayUsage>> {
    let mut days: Vec<DayUsage> = Vec::new();
    for total in totals {
        if days.last().is_none_or(|last| last.day != total.day) {
            days.push(DayUsage { day: total.day, usage_events: 0, credits_used: Credits::ZERO });
        }
        let Some(last) = days.last_mut() else { continue };
        last.usage_events += total.calls;
        add(&mut last.credits_used, total.credits)?;
    }
    Ok(days)
}

fn by_endpoint(connection: &Connection, totals: &[Total]) -> Result<Vec<EndpointUsage>> {
    let mut lines: HashMap<i64, (u64, Credits)> = HashMap::new();
    for total in totals {
        let (calls, credits) = lines.entry(total.line).or_default();
        *calls += total.calls;
        add(credits, total.credits)?;
    }
    // Lines differ by source as well; a report does not.
    let mut endpoints: HashMap<_, (u64, Credits)> = HashMap::new();
    for (line, (calls, credits)) in lines {
        let UsageLine { route_template, http_method, .. } = usage_line(connection, line)?;
        let sum = endpoints.entry((route_template, http_method)).or_default();
        sum.0 += calls;
        add(&mut sum.1, credits)?;
    }
    let mut endpoints: Vec<_> = endpoints
        .into_iter()
        .map(|((route_template, http_method), (call_count, credits_used))| EndpointUsage {
            route_template,
            http_method,
            call_count,
            credits_used,
        })
        .collect();
    endpoints.sort_unstable_by(|a, b| {
        let most_first = (b.credits_used, b.call_count).cmp(&(a.credits_used, a.call_count));
        most_first.then_with(|| (&a.route_template, &a.http_method).cmp(&(&b.route_template, &b.http_method)))
    });
    Ok(endpoints)
}

/// Daily totals of all accounts after a place, at most `limit`.
pub(crate) fn page(connection: &Connection, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>> {
    let [day, account, line] = place_of(after)?;
    let sql = "SELECT u.day, u.account, u.line, u.calls, u.amount, a.org_id \
               FROM usage_daily u JOIN account a ON a.id = u.account \
               WHERE (u.day, u.account, u.line) > (?1, ?2, ?3) ORDER BY u.day, u.account, u.line LIMIT ?4";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut last = None;
    let items = all(&mut statement, params![day, account, line, i64::from(limit)], |row| {
        let place: [i64; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
        let calls = row.get::<_, i64>(3)?.unsigned_abs();
        let credits_used = Credits::from_atoms(row.get(4)?);
        let org_id: String = row.get(5)?;
        last = Some(place);
        let read = || {
            let (account, line) = (parse(&org_id)?, usage_line(connection, place[2])?);
            Ok(DailyTotal { account, day: Day::from_unix_days(place[0]), line, calls, credits_used })
        };
        Ok(read())
    })?;
    let full = items.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    let next = last.filter(|_| full).map(|[day, account, line]| Cursor::new(format!("{day}/{account}/{line}")));
    Ok(Page { items, next })
}

fn place_of(cursor: Option<&Cursor>) -> Result<[i64; 3]> {
    let Some(cursor) = cursor else { return Ok([i64::MIN, 0, 0]) };
    let parts: Option<Vec<i64>> = cursor.as_str().split('/').map(|part| part.parse().ok()).collect();
    let place = parts.and_then(|parts| <[i64; 3]>::try_from(parts).ok());
    place.ok_or_else(|| corrupt("a cursor that is not of this store was handed in"))
}
