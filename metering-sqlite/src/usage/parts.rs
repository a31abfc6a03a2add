//! What one account used, by day, line and key: the daily totals, and what is not folded into them yet.

use metering_core::Day;
use metering_core::access::KeyNumber;
use metering_core::usage::DayRange;
use metering_sql::UsagePart;
use rusqlite::Row;

use crate::error::{Result, store_error};
use crate::journal::Snapshot;
use crate::rows::all;

/// The account's usage. That of a day, line and key may have several parts. Takes one seek per day of the range that has
/// usage of any account, no matter how much other usage those days have.
pub(crate) fn parts(connection: &Snapshot<'_>, account: i64, days: DayRange) -> Result<Vec<UsagePart>> {
    // Two separate subqueries: for min and max in one query, SQLite would read the whole table.
    let used = "SELECT max(?1, coalesce((SELECT min(day) FROM usage_daily), ?1)), \
                min(?2, coalesce((SELECT max(day) FROM usage_daily), ?1))";
    let mut statement = connection.prepare_cached(used).map_err(store_error)?;
    let window = [days.first.unix_days(), days.last.unix_days()];
    let (first, last) =
        statement.query_row(window, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).map_err(store_error)?;
    let sql = "SELECT line, key, calls, amount FROM usage_daily WHERE day = ?1 AND account = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut parts: Vec<UsagePart> = Vec::new();
    for day in (first..=last).rev() {
        let total = |row: &Row<'_>| {
            let (key, calls) = (KeyNumber::new(row.get(1)?), row.get::<_, i64>(2)?.unsigned_abs());
            let (day, atoms) = (Day::from_unix_days(day), row.get::<_, i64>(3)?.into());
            Ok(Ok(UsagePart { day, line: row.get(0)?, key, calls, atoms }))
        };
        parts.extend(all(&mut statement, [day, account], total)?);
    }
    let unfolded = connection.unfolded()?;
    let newer = unfolded.usage_of(account).filter(|(day, _)| days.contains(*day));
    parts.extend(newer.map(|(day, usage)| UsagePart {
        day,
        line: usage.line(),
        key: usage.key,
        calls: usage.added_calls(),
        atoms: usage.added_atoms().into(),
    }));
    Ok(parts)
}
