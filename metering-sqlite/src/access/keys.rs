//! The columns of keys and secrets that charges read, and the meters that they write. All else is in
//! [`metering_sql::keys`].

use std::future::ready;
use std::sync::LazyLock;

use metering_core::Timestamp;
use metering_core::access::{KeyHash, KeyNumber, Spent};
use metering_core::charging::KeyMeter;
use metering_sql::keys::{self, Metered};
use metering_sql::now;
use rusqlite::{Connection, Row, params};

use crate::error::{Result, store_error};
use crate::rows::first;
use crate::script::{dialect, names_of, row_of};

static BY_NUMBER: LazyLock<String> = LazyLock::new(|| dialect(&keys::query("api_key.number = ?2")));

/// The account and key of a secret.
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

/// The key with this number, of the account with this row number.
pub(crate) fn by_number(connection: &Connection, row: i64, number: KeyNumber) -> Result<Option<Metered>> {
    let mut statement = connection.prepare_cached(&BY_NUMBER).map_err(store_error)?;
    let names = names_of(&statement);
    let read = |row: &Row<'_>| now(ready(keys::metered(&row_of(row, &names)?)));
    first(&mut statement, params![row, number.get()], |row| Ok(read(row)))
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

/// A time that may be missing.
fn optional_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_unix_millis))
}
