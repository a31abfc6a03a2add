//! The list of all daily totals.

use std::collections::BTreeMap;

use metering_core::Day;
use metering_core::access::KeyNumber;
use metering_core::backend::{credits, one_more_than, page, unknown_cursor};
use metering_core::store::{Cursor, Page};
use metering_core::usage::DailyTotal;
use rusqlite::Connection;

use crate::access::accounts;
use crate::error::{Result, corrupt, store_error};
use crate::journal::{Snapshot, Unfolded};
use crate::rows::all;
use crate::usage::activity::usage_line;

/// A day, the row numbers of an account and a line, and the number of a key.
type DailyKey = [i64; 4];

/// Daily totals of all accounts after a cursor, at most `limit`.
pub(crate) fn list(snapshot: &Snapshot<'_>, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>> {
    let after = position_of(after)?;
    let most = usize::try_from(one_more_than(limit)).unwrap_or(usize::MAX);
    // The first totals overall are among the first of the table and of what is not folded into it. A total with a part
    // in each is among the first of both.
    let mut totals: BTreeMap<DailyKey, (u64, i128)> = BTreeMap::new();
    for (key, calls, atoms) in folded(snapshot, after, limit)? {
        totals.insert(key, (calls, atoms.into()));
    }
    // Most pages are of days that are folded.
    let last_day = if totals.len() < most { None } else { totals.last_key_value().map(|([day, ..], _)| *day) };
    for (key, (calls, atoms)) in unfolded(&*snapshot.unfolded()?, after, last_day, most) {
        let total = totals.entry(key).or_default();
        *total = (total.0 + calls, total.1 + atoms);
    }
    let total = |(position, (calls, atoms)): (DailyKey, _)| {
        let [day, account, line, key] = position;
        let (account, line) = (accounts::id_of(snapshot, account)?, usage_line(snapshot, line)?);
        let key = KeyNumber::new(u32::try_from(key).map_err(|_| corrupt(format_args!("{key} is no key's number")))?);
        let (day, credits_used) = (Day::from_unix_days(day), credits(atoms)?);
        Ok((position, DailyTotal { account, day, line, key, calls, credits_used }))
    };
    let rows = totals.into_iter().take(most).map(total).collect::<Result<_>>()?;
    Ok(page(rows, limit, |[day, account, line, key]| Cursor::new(format!("{day}/{account}/{line}/{key}"))))
}

fn folded(connection: &Connection, after: DailyKey, limit: u32) -> Result<Vec<(DailyKey, u64, i64)>> {
    let sql = "SELECT day, account, line, key, calls, amount FROM usage_daily \
               WHERE (day, account, line, key) > (?1, ?2, ?3, ?4) ORDER BY day, account, line, key LIMIT ?5";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let [day, account, line, key] = after;
    all(&mut statement, [day, account, line, key, one_more_than(limit)], |row| {
        let key = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
        Ok(Ok((key, row.get::<_, i64>(4)?.unsigned_abs(), row.get(5)?)))
    })
}

/// The first totals after this one of what is not folded, of no later day than the last that is wanted.
fn unfolded(
    unfolded: &Unfolded,
    after: DailyKey,
    last_day: Option<i64>,
    most: usize,
) -> BTreeMap<DailyKey, (u64, i128)> {
    let mut totals: BTreeMap<DailyKey, (u64, i128)> = BTreeMap::new();
    if unfolded.first_day().is_none_or(|first| last_day.is_some_and(|last| last < first.unix_days())) {
        return totals;
    }
    for (account, _) in unfolded.accounts() {
        for (day, usage) in unfolded.usage_of(account) {
            let key = [day.unix_days(), account, usage.line(), usage.key.get().into()];
            if key > after {
                let total = totals.entry(key).or_default();
                *total = (total.0 + usage.added_calls(), total.1 + i128::from(usage.added_atoms()));
            }
        }
        // The account's totals are complete by now.
        while totals.len() > most {
            totals.pop_last();
        }
    }
    totals
}

fn position_of(cursor: Option<&Cursor>) -> Result<DailyKey> {
    let Some(cursor) = cursor else { return Ok([i64::MIN, 0, 0, 0]) };
    let parts: Option<Vec<i64>> = cursor.as_str().split('/').map(|part| part.parse().ok()).collect();
    let key = parts.and_then(|parts| <[i64; 4]>::try_from(parts).ok());
    key.ok_or_else(unknown_cursor)
}
