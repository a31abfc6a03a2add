//! Daily totals: the usage report of an account, and the list of all totals.

use std::collections::HashMap;

use metering_core::store::{Cursor, Page};
use metering_core::usage::{DailyTotal, DayRange, UsageReport};
use metering_core::{AccountId, Credits, Day};
use rusqlite::{Connection, Row};

use crate::access::accounts;
use crate::error::{Result, store_error};
use crate::money::ledger;
use crate::rows::{all, parse};
use crate::usage::activity::usage_line;
use metering_core::backend::{UsageSums, one_more_than, page, unknown_cursor};

pub(crate) fn report(connection: &Connection, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>> {
    let Some((row, account)) = accounts::by_id(connection, id)? else { return Ok(None) };
    let sums = sums(connection, row, days)?;
    let after_last = Day::from_unix_days(days.last.unix_days().saturating_add(1));
    let credits_added = ledger::added_between(connection, row, days.first.start(), after_last.start())?;
    let lines =
        sums.lines().map(|line| Ok((line, usage_line(connection, line)?))).collect::<Result<HashMap<_, _>>>()?;
    sums.report(account, credits_added, &lines).map(Some)
}

/// The account's usage per line. Takes one seek per day of the range, no matter how much other usage those days have.
fn sums(connection: &Connection, account: i64, days: DayRange) -> Result<UsageSums<i64>> {
    // Two separate subqueries: for min and max in one query, SQLite would read the whole table.
    let used = "SELECT max(?1, coalesce((SELECT min(day) FROM usage_daily), ?1)), \
                min(?2, coalesce((SELECT max(day) FROM usage_daily), ?1))";
    let mut statement = connection.prepare_cached(used).map_err(store_error)?;
    let window = [days.first.unix_days(), days.last.unix_days()];
    let (first, last) =
        statement.query_row(window, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).map_err(store_error)?;
    let sql = "SELECT line, calls, amount FROM usage_daily WHERE day = ?1 AND account = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut sums = UsageSums::default();
    for day in (first..=last).rev() {
        let total = |row: &Row<'_>| Ok(Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs(), row.get::<_, i64>(2)?)));
        for (line, calls, atoms) in all(&mut statement, [day, account], total)? {
            sums.add(Day::from_unix_days(day), line, calls, atoms.into());
        }
    }
    Ok(sums)
}

/// Daily totals of all accounts after a cursor, at most `limit`.
pub(crate) fn list(connection: &Connection, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>> {
    let [day, account, line] = position_of(after)?;
    let sql = "SELECT u.day, u.account, u.line, u.calls, u.amount, a.org_id \
               FROM usage_daily u JOIN account a ON a.id = u.account \
               WHERE (u.day, u.account, u.line) > (?1, ?2, ?3) ORDER BY u.day, u.account, u.line LIMIT ?4";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = all(&mut statement, [day, account, line, one_more_than(limit)], |row| {
        let key: [i64; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
        let calls = row.get::<_, i64>(3)?.unsigned_abs();
        let credits_used = Credits::from_atoms(row.get(4)?);
        let org_id: String = row.get(5)?;
        let read = || {
            let (account, line) = (parse(&org_id)?, usage_line(connection, key[2])?);
            Ok((key, DailyTotal { account, day: Day::from_unix_days(key[0]), line, calls, credits_used }))
        };
        Ok(read())
    })?;
    Ok(page(rows, limit, |[day, account, line]| Cursor::new(format!("{day}/{account}/{line}"))))
}

fn position_of(cursor: Option<&Cursor>) -> Result<[i64; 3]> {
    let Some(cursor) = cursor else { return Ok([i64::MIN, 0, 0]) };
    let parts: Option<Vec<i64>> = cursor.as_str().split('/').map(|part| part.parse().ok()).collect();
    let key = parts.and_then(|parts| <[i64; 3]>::try_from(parts).ok());
    key.ok_or_else(unknown_cursor)
}
