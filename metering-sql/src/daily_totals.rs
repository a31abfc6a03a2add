//! The list of all daily totals: the rows of the table, with what charges have not added to them yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use metering_core::access::KeyNumber;
use metering_core::backend::{credits, one_more_than, page, unknown_cursor};
use metering_core::store::{Cursor, Page};
use metering_core::usage::DailyTotal;
use metering_core::{AccountId, ClientSource, Day, UsageLine};

use crate::executor::{Executor, UsagePart};
use crate::fault::{Result, corrupt};
use crate::transfer::{Part, Position, Record, Source};
use crate::{accounts, usage_lines, values};

/// The sort order of daily totals: day, row number of the account, the line's route, method and source, compared as
/// bytes, and the key.
pub(crate) type DailyKey = (Day, i64, Arc<str>, Arc<str>, &'static str, KeyNumber);

/// The account, calls and atoms.
type DailyTotals = BTreeMap<DailyKey, (AccountId, u64, i128)>;

/// Daily totals of all accounts after a cursor, at most `limit`.
pub async fn list(db: &mut dyn Executor, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>> {
    let position = after.map(position_of).transpose()?;
    Ok(page(first(db, position.as_ref(), limit).await?, limit, cursor_of))
}

/// The totals after a position, and one more than `limit` if there are so many.
pub(crate) async fn first(
    db: &mut dyn Executor,
    after: Option<&DailyKey>,
    limit: u32,
) -> Result<Vec<(DailyKey, DailyTotal)>> {
    // The first totals overall are among the first of the table and the first of those that are not in it yet. A total
    // with a part in each is among the first of both.
    let mut totals = in_table(db, after, limit).await?;
    add_unfolded(db, after, limit, &mut totals).await?;
    let total = |(key, (account, calls, atoms)): (DailyKey, (AccountId, u64, i128))| {
        let (day, _, route_template, http_method, source, number) = key.clone();
        let line = UsageLine { route_template, http_method, source: ClientSource::from_name(source) };
        Ok((key, DailyTotal { account, day, line, key: number, calls, credits_used: credits(atoms)? }))
    };
    totals.into_iter().take(most(limit)).map(total).collect()
}

/// A cursor before all totals of a day.
#[must_use]
pub fn from_day(day: Day) -> Cursor {
    cursor_of(&before(day))
}

/// Before all totals of a day.
pub(crate) fn before(day: Day) -> DailyKey {
    (day, i64::MIN, "".into(), "".into(), "", KeyNumber::FIRST)
}

fn most(limit: u32) -> usize {
    usize::try_from(one_more_than(limit)).unwrap_or(usize::MAX)
}

async fn in_table(db: &mut dyn Executor, after: Option<&DailyKey>, limit: u32) -> Result<DailyTotals> {
    let source = Source::daily_totals();
    let mut values = values![one_more_than(limit)];
    if let Some((day, account, route, method, client, key)) = after {
        values.extend(values![day, account, **route, **method, *client, key]);
    }
    let mut totals = DailyTotals::new();
    for row in db.query(&source.sql(after.is_some()), &values).await? {
        let Record::Usage(DailyTotal { account, day, line, key, calls, credits_used }) = (source.read)(db, &row)?
        else {
            return Err(corrupt("a row of usage is of another section"));
        };
        totals.insert(key_of(day, row.get(4)?, line, key), (account, calls, credits_used.atoms().into()));
    }
    Ok(totals)
}

/// Adds the totals that are not in the table. `totals` has the first rows of the table.
async fn add_unfolded(
    db: &mut dyn Executor,
    after: Option<&DailyKey>,
    limit: u32,
    totals: &mut DailyTotals,
) -> Result<()> {
    let first = after.map_or((Day::from_unix_days(i64::MIN), i64::MIN), |(day, account, ..)| (*day, *account));
    // Most pages are full of days that have nothing else.
    let full = totals.last_key_value().filter(|_| totals.len() >= most(limit));
    let last = full.map_or(Day::from_unix_days(i64::MAX), |((day, ..), _)| *day);
    // Each pair has at least one total, but the totals of the first may all be before the cursor.
    let parts = db.first_unfolded_usage(first, last, one_more_than(limit) + 1).await?;
    if parts.is_empty() {
        return Ok(());
    }
    let lines = usage_lines::numbered(db, parts.iter().map(|(_, part)| part.line).collect()).await?;
    let mut rows: Vec<i64> = parts.iter().map(|(account, _)| *account).collect();
    rows.dedup();
    let names = accounts::names(db, rows).await?;
    for (account, UsagePart { day, line, key, calls, atoms }) in parts {
        let key = key_of(day, account, lines[&line].clone(), key);
        if after.is_none_or(|after| key > *after) {
            let (id, _) = names.get(&account).ok_or_else(|| corrupt(format_args!("account {account} is missing")))?;
            let total = totals.entry(key).or_insert_with(|| (id.clone(), 0, 0));
            (total.1, total.2) = (total.1 + calls, total.2 + atoms);
        }
    }
    Ok(())
}

fn key_of(day: Day, account: i64, line: UsageLine, key: KeyNumber) -> DailyKey {
    (day, account, line.route_template, line.http_method, line.source.as_str(), key)
}

pub(crate) fn cursor_of((day, account, route, method, source, key): &DailyKey) -> Cursor {
    let text = |text: &str| Part::Text(text.to_owned());
    let [day, account, key] = [day.unix_days(), *account, key.get().into()].map(Part::Number);
    Position(vec![day, account, text(route), text(method), text(source), key]).cursor()
}

pub(crate) fn position_of(cursor: &Cursor) -> Result<DailyKey> {
    let parts = Position::of(cursor, 6)?.0;
    let [Part::Number(day), Part::Number(account), texts @ .., Part::Number(key)] = &*parts else {
        return Err(unknown_cursor().into());
    };
    let [Part::Text(route), Part::Text(method), Part::Text(source)] = texts else {
        return Err(unknown_cursor().into());
    };
    let key = KeyNumber::new(u32::try_from(*key).map_err(|_| unknown_cursor())?);
    let source = ClientSource::from_name(source).as_str();
    Ok((Day::from_unix_days(*day), *account, route.as_str().into(), method.as_str().into(), source, key))
}
