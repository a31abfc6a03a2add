//! Runs statements, and converts rows to domain types.

use std::fmt::Display;
use std::pin::pin;
use std::str::FromStr;

use futures_util::TryStreamExt;
use metering_core::access::{KeyNumber, Spent, Totals};
use metering_core::backend::credits;
use metering_core::charging::{Delivery, Fingerprint, HoldId, KeyMeter, MeterState, Remembered, StoredResult, Window};
use metering_core::money::{AlertLevel, BalanceAlert};
use metering_core::{Credits, Day, RateLimits, Timestamp};
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
pub(crate) use crate::connection::value::Values;
use crate::error::{Result, corrupt};

/// The columns that [`meter_state`] reads, starting with the rate limits.
pub(crate) const METER_COLUMNS: &str = "m.requests_per_minute, m.requests_per_day, m.balance, m.purchased, \
     m.granted, m.used, m.minute, m.minute_count, m.day, m.day_count, m.alert_below::BIGINT, m.alert_raised::BIGINT";

/// All rows of a query. The statement is prepared once per connection.
pub(crate) async fn all<C: GenericClient>(client: &C, sql: &str, values: Values<'_>) -> Result<Vec<Row>> {
    let statement = client.prepare(sql).await?;
    Ok(client.query(&statement, values).await?)
}

/// Passes the rows of a query to `read` one by one, as they arrive.
pub(crate) async fn each<C: GenericClient>(
    client: &C,
    sql: &str,
    values: Values<'_>,
    mut read: impl FnMut(&Row) -> Result<()> + Send,
) -> Result<()> {
    let statement = client.prepare(sql).await?;
    let mut rows = pin!(client.stream(&statement, values).await?);
    while let Some(row) = rows.try_next().await? {
        read(&row)?;
    }
    Ok(())
}

/// The first row of a query, if any.
pub(crate) async fn first<C: GenericClient>(client: &C, sql: &str, values: Values<'_>) -> Result<Option<Row>> {
    Ok(all(client, sql, values).await?.into_iter().next())
}

/// The one row of a query that always has one.
pub(crate) async fn one<C: GenericClient>(client: &C, sql: &str, values: Values<'_>) -> Result<Row> {
    first(client, sql, values).await?.ok_or_else(|| corrupt("a row that must exist is missing"))
}

/// Whether a query has rows.
pub(crate) async fn exists<C: GenericClient>(client: &C, sql: &str, values: Values<'_>) -> Result<bool> {
    Ok(first(client, sql, values).await?.is_some())
}

/// Runs a statement and returns how many rows it changed.
pub(crate) async fn execute<C: GenericClient>(client: &C, sql: &str, values: Values<'_>) -> Result<u64> {
    let statement = client.prepare(sql).await?;
    Ok(client.execute(&statement, values).await?)
}

fn window(row: &Row, first: usize) -> Result<Window> {
    Ok(Window { index: row.try_get(first)?, count: unsigned(row, first + 1)? })
}

/// Reads the input of the charge rule from [`METER_COLUMNS`], which start at `first`.
pub(crate) fn meter_state(row: &Row, first: usize) -> Result<MeterState> {
    Ok(MeterState {
        limits: limits(row, first)?,
        totals: totals(row, first + 2)?,
        minute: window(row, first + 6)?,
        day: window(row, first + 8)?,
        alert: alert(row, first + 10)?,
    })
}

/// The balance alert of an account: the threshold, and the level raised.
fn alert(row: &Row, first: usize) -> Result<BalanceAlert> {
    let threshold = row.try_get::<_, Option<i64>>(first)?.map(Credits::from_atoms);
    Ok(BalanceAlert { threshold, raised: alert_level(row, first + 1)? })
}

fn alert_level(row: &Row, index: usize) -> Result<AlertLevel> {
    let number = unsigned(row, index)?;
    AlertLevel::from_number(number).ok_or_else(|| corrupt(format_args!("{number} is not a level of an alert")))
}

fn limits(row: &Row, first: usize) -> Result<RateLimits> {
    Ok(RateLimits { requests_per_minute: unsigned(row, first)?, requests_per_day: unsigned(row, first + 1)? })
}

/// Reads the totals of an account. The held amount is computed from the balance, because a column for it would be read
/// and written with every charge; `verify` compares it with the open holds.
fn totals(row: &Row, first: usize) -> Result<Totals> {
    let (balance, purchased) = (amount(row, first)?, amount(row, first + 1)?);
    let (granted, used) = (amount(row, first + 2)?, amount(row, first + 3)?);
    let [added, taken] =
        [(purchased, granted), (used, balance)].map(|(one, other)| i128::from(one.atoms()) + i128::from(other.atoms()));
    Ok(Totals { balance, purchased, granted, used, held: credits(added - taken)? })
}

/// The columns that [`key_meter`] reads from `key_meter c`.
pub(crate) const KEY_METER_COLUMNS: &str = "c.spent_since, c.spent, c.minute, c.minute_count, c.day, c.day_count, \
     c.raised";

/// Reads what counts against the terms of a key from [`KEY_METER_COLUMNS`], which start at `first`.
pub(crate) fn key_meter(row: &Row, first: usize) -> Result<KeyMeter> {
    let spent = Spent { since: Day::from_unix_days(row.try_get(first)?), amount: amount(row, first + 1)? };
    Ok(KeyMeter {
        spent,
        minute: window(row, first + 2)?,
        day: window(row, first + 4)?,
        raised: alert_level(row, first + 6)?,
    })
}

/// Like [`key_meter`], for columns that are all NULL if there is no meter.
pub(crate) fn optional_key_meter(row: &Row, first: usize) -> Result<Option<KeyMeter>> {
    match row.try_get::<_, Option<i64>>(first)? {
        Some(_) => key_meter(row, first).map(Some),
        None => Ok(None),
    }
}

/// The usage that counts towards the terms of a key, in the order of [`KEY_METER_COLUMNS`].
pub(crate) fn key_meter_columns(meter: &KeyMeter) -> [i64; 7] {
    let KeyMeter { spent, raised, minute, day } = meter;
    let spent = [spent.since.unix_days(), spent.amount.atoms()];
    let windows = [minute.index, minute.count.into(), day.index, day.count.into()];
    let ([since, amount], [minute, minute_count, day, day_count]) = (spent, windows);
    [since, amount, minute, minute_count, day, day_count, raised.number().into()]
}

pub(crate) fn timestamp(row: &Row, index: usize) -> Result<Timestamp> {
    Ok(Timestamp::from_unix_millis(row.try_get(index)?))
}

pub(crate) fn amount(row: &Row, index: usize) -> Result<Credits> {
    Ok(Credits::from_atoms(row.try_get(index)?))
}

/// A number that is never negative.
pub(crate) fn unsigned<T: TryFrom<i64>>(row: &Row, index: usize) -> Result<T> {
    let number: i64 = row.try_get(index)?;
    T::try_from(number).map_err(|_| corrupt(format_args!("{number} is out of range")))
}

/// The number of a key.
pub(crate) fn key_number(row: &Row, index: usize) -> Result<KeyNumber> {
    unsigned(row, index).map(KeyNumber::new)
}

/// A time, or NULL.
pub(crate) fn optional_timestamp(row: &Row, index: usize) -> Result<Option<Timestamp>> {
    Ok(row.try_get::<_, Option<i64>>(index)?.map(Timestamp::from_unix_millis))
}

/// A column of exactly `N` bytes.
pub(crate) fn bytes<const N: usize>(row: &Row, index: usize) -> Result<[u8; N]> {
    let bytes: &[u8] = row.try_get(index)?;
    bytes.try_into().map_err(|_| corrupt(format_args!("a column has {} bytes instead of {N}", bytes.len())))
}

/// A column of exactly `N` bytes, or NULL.
pub(crate) fn optional_bytes<const N: usize>(row: &Row, index: usize) -> Result<Option<[u8; N]>> {
    match row.try_get::<_, Option<&[u8]>>(index)? {
        Some(_) => bytes(row, index).map(Some),
        None => Ok(None),
    }
}

/// A text column, parsed.
pub(crate) fn parsed<T>(row: &Row, index: usize) -> Result<T>
where
    T: FromStr,
    T::Err: Display,
{
    parse(row.try_get(index)?)
}

/// Parses a stored text; the data is corrupt if that fails.
pub(crate) fn parse<T>(text: &str) -> Result<T>
where
    T: FromStr,
    T::Err: Display,
{
    text.parse().map_err(|error| corrupt(format_args!("{text:?}: {error}")))
}

/// The remembered outcome of a request: the charge, the balance, the expiry time, for an idempotency key its
/// fingerprint, number of tries and lease, and the hold.
pub(crate) fn stored_result(row: &Row, from: usize) -> Result<Remembered> {
    let delivery = match row.try_get::<_, Option<&[u8]>>(from + 3)? {
        None => None,
        Some(_) => {
            let tries: i64 = row.try_get(from + 4)?;
            let tries =
                tries.try_into().map_err(|_| corrupt(format_args!("{tries} tries of a request are out of range")))?;
            let open_until = row.try_get::<_, Option<i64>>(from + 5)?.map(Timestamp::from_unix_millis);
            Some(Delivery { fingerprint: Fingerprint::from_bytes(bytes(row, from + 3)?), tries, open_until })
        }
    };
    let hold = optional_bytes(row, from + 6)?.map(HoldId::from_bytes);
    let result = StoredResult { charged: amount(row, from)?, balance: amount(row, from + 1)?, delivery, hold };
    Ok(Remembered { result, expires_at: timestamp(row, from + 2)? })
}
