//! Rows of accounts, read into the domain's types.

use std::fmt::Display;
use std::str::FromStr;

use metering_core::{Account, Address, Credits, MeterState, RateLimits, Timestamp, Totals, Window};
use rusqlite::{OptionalExtension, Params, Row, Statement};

use crate::error::{Result, corrupt, store_error};

/// The columns that [`account`] reads, of `account a JOIN meter m`.
pub(crate) const ACCOUNT_COLUMNS: &str = "a.id, a.org_id, a.agent_name, a.email, a.payer_address, a.created_at, \
     a.revoked_at, m.requests_per_minute, m.requests_per_day, m.balance, m.purchased, m.granted, m.used";

/// The columns that [`meter_state`] reads, starting with the caps.
pub(crate) const METER_COLUMNS: &str = "m.requests_per_minute, m.requests_per_day, m.balance, m.purchased, \
     m.granted, m.used, m.minute, m.minute_count, m.day, m.day_count";

/// Reads the first row of a query, if any, with a reader that may find it corrupt.
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

/// An account with its row number.
pub(crate) fn account(row: &Row<'_>) -> rusqlite::Result<Result<(i64, Account)>> {
    let id: i64 = row.get(0)?;
    let org_id: String = row.get(1)?;
    let agent_name: String = row.get(2)?;
    let email: Option<String> = row.get(3)?;
    let payer: Option<[u8; 20]> = row.get(4)?;
    let created_at = Timestamp::from_unix_millis(row.get(5)?);
    let revoked_at = row.get::<_, Option<i64>>(6)?.map(Timestamp::from_unix_millis);
    let (limits, totals) = (limits(row, 7)?, totals(row, 9)?);
    let read = || {
        Ok(Account {
            id: parse(&org_id)?,
            agent_name: parse(&agent_name)?,
            email: email.as_deref().map(parse).transpose()?,
            payer_address: payer.map(Address::from_bytes),
            limits,
            totals,
            created_at,
            revoked_at,
        })
    };
    Ok(read().map(|account| (id, account)))
}

/// What the charge rule works on, from [`METER_COLUMNS`] that start at `first`.
pub(crate) fn meter_state(row: &Row<'_>, first: usize) -> rusqlite::Result<MeterState> {
    Ok(MeterState {
        limits: limits(row, first)?,
        totals: totals(row, first + 2)?,
        minute: Window { index: row.get(first + 6)?, count: row.get(first + 7)? },
        day: Window { index: row.get(first + 8)?, count: row.get(first + 9)? },
    })
}

fn limits(row: &Row<'_>, first: usize) -> rusqlite::Result<RateLimits> {
    Ok(RateLimits { requests_per_minute: row.get(first)?, requests_per_day: row.get(first + 1)? })
}

fn totals(row: &Row<'_>, first: usize) -> rusqlite::Result<Totals> {
    let amount = |index| row.get(index).map(Credits::from_atoms);
    Ok(Totals {
        balance: amount(first)?,
        purchased: amount(first + 1)?,
        granted: amount(first + 2)?,
        used: amount(first + 3)?,
    })
}

/// Parses a stored text with its own type; one that it refuses is corrupt.
pub(crate) fn parse<T>(text: &str) -> Result<T>
where
    T: FromStr,
    T::Err: Display,
{
    text.parse().map_err(|error| corrupt(format_args!("{text:?}: {error}")))
}
