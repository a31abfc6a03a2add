//! The rows of keys and their secrets. [`write_key`] is the only place that changes them, except that revoking an
//! account revokes its secrets, and that [`metering_sql::ended_keys`] deletes old ones.

use std::sync::LazyLock;

use metering_core::access::{Budget, Key, KeyHash, KeyNumber, KeyTerms, Spent};
use metering_core::charging::{KeyMeter, Window};
use metering_core::{AccountId, Credits, Day, RateLimits, Timestamp};
use rusqlite::{Connection, Row, params};

use crate::error::{Result, store_error};
use crate::rows::{alert_level, first, parse, timestamp};

/// The columns that [`key`] reads.
pub(crate) const KEY_COLUMNS: &str = "k.number, k.public_id, k.parent, k.name, k.scopes, k.routes, k.networks, \
     k.expires_at, k.disabled, k.requests_per_minute, k.requests_per_day, k.max_in_flight, k.budget_limit, \
     k.budget_reset, k.created_at, k.leaked_at, k.revoked_at, k.alert_below, \
     k.tokens_per_minute";
/// How many there are.
pub(crate) const KEY_COLUMN_COUNT: usize = 19;

/// The columns that [`meter`] reads, of a `LEFT JOIN` with [`METER_JOIN`].
pub(crate) const METER_COLUMNS: &str = "m.spent_since, m.spent, m.minute, m.minute_count, m.day, m.day_count, \
     m.raised";
const METER_JOIN: &str = "LEFT JOIN key_meter m ON m.account = k.account AND m.key = k.number";

static BY_NUMBER: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {KEY_COLUMNS}, {METER_COLUMNS} FROM api_key k {METER_JOIN} WHERE k.account = ?1 AND k.number = ?2")
});

/// A key, and what counts against its terms.
pub(crate) type Metered = (Key, Option<KeyMeter>);

/// What a secret belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret {
    /// The account's row number.
    pub(crate) account: i64,
    pub(crate) key: KeyNumber,
    /// When it stops working, if it was replaced with a grace period.
    pub(crate) expires_at: Option<Timestamp>,
}

impl Secret {
    pub(crate) fn works(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| now < at)
    }
}

/// A secret that is not revoked. Those of a revoked account all are.
pub(crate) fn secret(connection: &Connection, hash: &KeyHash) -> Result<Option<Secret>> {
    let sql = "SELECT account, key, expires_at FROM key_secret WHERE hash = ?1 AND revoked_at IS NULL";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    first(&mut statement, [hash.as_bytes()], |row| {
        let (account, key) = (row.get(0)?, KeyNumber::new(row.get(1)?));
        Ok(Ok(Secret { account, key, expires_at: optional_time(row, 2)? }))
    })
}

/// The key with this number, of the account with this row number and id.
pub(crate) fn by_number(
    connection: &Connection,
    row: i64,
    account: &AccountId,
    number: KeyNumber,
) -> Result<Option<Metered>> {
    let mut statement = connection.prepare_cached(&BY_NUMBER).map_err(store_error)?;
    first(&mut statement, params![row, number.get()], |row| metered(row, account))
}

/// Writes the meter of a key.
pub(crate) fn write_meter(connection: &Connection, row: i64, key: KeyNumber, meter: &KeyMeter) -> rusqlite::Result<()> {
    let sql = "INSERT INTO key_meter (account, key, spent_since, spent, minute, minute_count, day, day_count, \
                 raised) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
               ON CONFLICT (account, key) DO UPDATE SET spent_since = excluded.spent_since, spent = excluded.spent, \
                 minute = excluded.minute, minute_count = excluded.minute_count, day = excluded.day, \
                 day_count = excluded.day_count, raised = excluded.raised";
    let KeyMeter { spent: Spent { since, amount }, raised, minute, day } = meter;
    let (since, spent, raised) = (since.unix_days(), amount.atoms(), raised.number());
    let values = params![row, key.get(), since, spent, minute.index, minute.count, day.index, day.count, raised];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

fn metered(row: &Row<'_>, account: &AccountId) -> rusqlite::Result<Result<Metered>> {
    let (key, meter) = (key(row, 0, account)?, meter(row, KEY_COLUMN_COUNT)?);
    Ok(key.and_then(|key| Ok((key, meter?))))
}

/// Reads a key of this account from [`KEY_COLUMNS`], which start at `from`.
pub(crate) fn key(row: &Row<'_>, from: usize, account: &AccountId) -> rusqlite::Result<Result<Key>> {
    let text = |index: usize| row.get::<_, String>(from + index);
    let (id, name, scopes, routes, networks) = (text(1)?, text(3)?, text(4)?, text(5)?, text(6)?);
    let (number, parent) = (KeyNumber::new(row.get(from)?), row.get::<_, Option<u32>>(from + 2)?);
    let (expires_at, disabled) = (optional_time(row, from + 7)?, row.get(from + 8)?);
    let limits = RateLimits { requests_per_minute: row.get(from + 9)?, requests_per_day: row.get(from + 10)? };
    let max_in_flight = row.get(from + 11)?;
    let (limit, reset): (Option<i64>, Option<String>) = (row.get(from + 12)?, row.get(from + 13)?);
    let (created_at, leaked_at) = (timestamp(row, from + 14)?, optional_time(row, from + 15)?);
    let revoked_at = optional_time(row, from + 16)?;
    let alert_below = row.get::<_, Option<i64>>(from + 17)?.map(Credits::from_atoms);
    let tokens_per_minute = row.get(from + 18)?;
    let read = || {
        let reset = reset.as_deref().map(parse).transpose()?;
        let terms = KeyTerms {
            name: parse(&name)?,
            scopes: parse(&scopes)?,
            routes: parse(&routes)?,
            networks: parse(&networks)?,
            expires_at,
            disabled,
            limits,
            tokens_per_minute,
            max_in_flight,
            budget: limit.map(|limit| Budget { limit: Credits::from_atoms(limit), reset }),
            alert_below,
        };
        let (account, parent) = (account.clone(), parent.map(KeyNumber::new));
        Ok(Key { id: parse(&id)?, number, account, parent, terms, created_at, leaked_at, revoked_at })
    };
    Ok(read())
}

/// Reads a meter from [`METER_COLUMNS`], which start at `first`; `None` if the key has none.
pub(crate) fn meter(row: &Row<'_>, first: usize) -> rusqlite::Result<Result<Option<KeyMeter>>> {
    let Some(since) = row.get(first)? else { return Ok(Ok(None)) };
    let spent = Spent { since: Day::from_unix_days(since), amount: Credits::from_atoms(row.get(first + 1)?) };
    let window = |first| Ok::<_, rusqlite::Error>(Window { index: row.get(first)?, count: row.get(first + 1)? });
    let (minute, day, raised) = (window(first + 2)?, window(first + 4)?, row.get(first + 6)?);
    Ok(alert_level(raised, "key_meter.raised").map(|raised| Some(KeyMeter { spent, raised, minute, day })))
}

/// A time that may be missing.
pub(crate) fn optional_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_unix_millis))
}
