//! Converts rows to domain types: accounts, and columns that several tables share.

use std::fmt::Display;
use std::str::FromStr;

use metering_core::access::{EmailStatus, Payer, Totals};
use metering_core::chains::{Address, TxHash, TxRef};
use metering_core::charging::{MeterState, Window};
use metering_core::money::{AlertLevel, BalanceAlert, PaymentRef};
use metering_core::{Account, Credits, RateLimits, Timestamp};
use rusqlite::{OptionalExtension, Params, Row, Statement};

use crate::error::{Result, corrupt, corrupt_column, store_error};

/// The columns that [`account`] reads from `account a JOIN meter m`.
pub(crate) const ACCOUNT_COLUMNS: &str = "a.id, a.org_id, a.agent_name, a.email, a.payer_address, \
     a.payer_chain_id, a.created_at, a.revoked_at, m.requests_per_minute, m.requests_per_day, m.balance, m.purchased, \
     m.granted, m.used, m.held, a.email_credits, a.email_verified_at, m.alert_below, m.alert_raised";

pub(crate) const ACCOUNT_COLUMN_COUNT: usize = 19;

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

/// Reads an account and its row number.
pub(crate) fn account(row: &Row<'_>) -> rusqlite::Result<Result<(i64, Account)>> {
    let id: i64 = row.get(0)?;
    let org_id: String = row.get(1)?;
    let agent_name: String = row.get(2)?;
    let email: Option<String> = row.get(3)?;
    let payer = payer(row, 4)?;
    let created_at = timestamp(row, 6)?;
    let revoked_at = row.get::<_, Option<i64>>(7)?.map(Timestamp::from_unix_millis);
    let (limits, totals) = (limits(row, 8)?, totals(row, 10)?);
    let email_status = email_status(row.get(15)?, row.get(16)?);
    let alert = balance_alert(row, 17)?;
    let read = || {
        Ok(Account {
            id: parse(&org_id)?,
            agent_name: parse(&agent_name)?,
            email: email.as_deref().map(parse).transpose()?,
            email_status,
            payer,
            limits,
            totals,
            alert: alert?,
            created_at,
            revoked_at,
        })
    };
    Ok(read().map(|account| (id, account)))
}

/// The status of an email address: the credits that come with the verification, and its time. The schema ensures that at most one is set.
const fn email_status(credits: Option<i64>, verified_at: Option<i64>) -> EmailStatus {
    match (credits, verified_at) {
        (None, None) => EmailStatus::Unchecked,
        (Some(atoms), _) => EmailStatus::Pending { free_credits: Credits::from_atoms(atoms) },
        (None, Some(at)) => EmailStatus::Verified { at: Timestamp::from_unix_millis(at) },
    }
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
    level.ok_or_else(|| corrupt_column(column, format_args!("{number} is no alert level")))
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

/// The wallet and chain of an account's payer. The schema ensures that both are set or neither is.
fn payer(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Payer>> {
    match row.get::<_, Option<i64>>(first + 1)? {
        Some(chain_id) => Ok(Some(Payer { address: address(row, first)?, chain_id: chain_id.cast_unsigned() })),
        None => Ok(None),
    }
}

/// The payment of a ledger entry: chain, hash and plan.
pub(crate) fn payment_ref(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<PaymentRef>> {
    let plan_id = row.get(first + 2)?;
    Ok(optional_tx(row, first)?.map(|tx| PaymentRef { tx, plan_id }))
}

/// A transaction: chain and hash. The schema ensures that both are set or neither is.
pub(crate) fn optional_tx(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<TxRef>> {
    match row.get::<_, Option<i64>>(first)? {
        Some(_) => tx(row, first).map(Some),
        None => Ok(None),
    }
}

/// A transaction: chain and hash.
pub(crate) fn tx(row: &Row<'_>, first: usize) -> rusqlite::Result<TxRef> {
    let (chain_id, hash): (i64, [u8; 32]) = (row.get(first)?, row.get(first + 1)?);
    Ok(TxRef { chain_id: chain_id.cast_unsigned(), hash: TxHash::from_bytes(hash) })
}

pub(crate) fn address(row: &Row<'_>, index: usize) -> rusqlite::Result<Address> {
    row.get(index).map(Address::from_bytes)
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
