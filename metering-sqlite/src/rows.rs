//! Converts rows to domain types: accounts, and columns that several tables share.

use std::fmt::Display;
use std::str::FromStr;

use metering_core::access::Totals;
use metering_core::charging::{MeterState, Window};
use metering_core::money::{AlertLevel, BalanceAlert};
use metering_core::{Credits, RateLimits, Timestamp};
use rusqlite::{OptionalExtension, Params, Row, Statement};

use crate::error::{Result, corrupt, corrupt_column, store_error};

/// The columns that [`meter_state`] reads, starting with the rate limits.
pub(crate) const METER_COLUMNS: &str = "m.requests_per_minute, m.requests_per_day, m.balance, m.purchased, \
     m.granted, m.used, m.held, m.minute, m.minute_count, m.day, m.day_count, m.alert_below, m.alert_raised";
/// How many there are.
pub(crate) const METER_COLUMN_COUNT: usize = 13;

/// Reads the first row of a query, if any. `read` may find the row corrupt.
pub(crate) fn first<T>(
    statement: &mut Statement<'_>,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<Result<T>>,
) -> Result<Option<T>> {
    statement.query_row(params, read).optional().map_err(store_error)?.transpose()
}

/// Reads all rows of a query.
pub(crate) fn all<T>(
    statement: &mut Statement<'_>,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<Result<T>>,
) -> Result<Vec<T>> {
    let mut rows = statement.query(params).map_err(store_error)?;
    let mut items = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        items.push(read(row).map_err(store_error)??);
    }
    Ok(items)
}

/// Reads the input of the charge rule from [`METER_COLUMNS`], which start at `first`.
pub(crate) fn meter_state(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<MeterState>> {
    let (limits, totals) = (limits(row, first)?, totals(row, first + 2)?);
    let minute = Window { index: row.get(first + 7)?, count: row.get(first + 8)? };
    let day = Window { index: row.get(first + 9)?, count: row.get(first + 10)? };
    Ok(balance_alert(row, first + 11)?.map(|alert| MeterState { limits, totals, alert, minute, day }))
}

/// Reads the threshold and the level of the alert of a balance.
fn balance_alert(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<BalanceAlert>> {
    let threshold = row.get::<_, Option<i64>>(first)?.map(Credits::from_atoms);
    let raised = alert_level(row.get(first + 1)?, "meter.alert_raised");
    Ok(raised.map(|raised| BalanceAlert { threshold, raised }))
}

/// The alert level with this number, which was read from `column`.
pub(crate) fn alert_level(number: i64, column: &str) -> Result<AlertLevel> {
    let level = u8::try_from(number).ok().and_then(AlertLevel::from_number);
    level.ok_or_else(|| corrupt_column(column, format_args!("{number} is not an alert level")))
}

fn limits(row: &Row<'_>, first: usize) -> rusqlite::Result<RateLimits> {
    Ok(RateLimits { requests_per_minute: row.get(first)?, requests_per_day: row.get(first + 1)? })
}

/// Reads balance, purchased, granted, used and held.
pub(crate) fn totals(row: &Row<'_>, first: usize) -> rusqlite::Result<Totals> {
    let amount = |index| row.get(index).map(Credits::from_atoms);
    Ok(Totals {
        balance: amount(first)?,
        purchased: amount(first + 1)?,
        granted: amount(first + 2)?,
        used: amount(first + 3)?,
        held: amount(first + 4)?,
    })
}

pub(crate) fn timestamp(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    row.get(index).map(Timestamp::from_unix_millis)
}

/// Parses a stored text; the data is corrupt if that fails.
pub(crate) fn parse<T>(text: &str) -> Result<T>
where
    T: FromStr,
    T::Err: Display,
{
    text.parse().map_err(|error| corrupt(format_args!("{text:?}: {error}")))
}
