//! Which keys of an account are below which, and what all of them used: a budget counts the keys below its key.

use std::collections::HashMap;

use metering_core::Day;
use metering_core::access::KeyNumber;
use metering_core::usage::DayRange;
use rusqlite::Connection;

use crate::error::{Result, store_error};
use crate::rows::all;

/// Every day.
pub(crate) const ALL_DAYS: DayRange =
    DayRange { first: Day::from_unix_days(i64::MIN), last: Day::from_unix_days(i64::MAX) };

/// The keys of an account, each with the key above it.
#[derive(Debug, Default)]
pub(crate) struct KeyTree {
    parents: HashMap<KeyNumber, KeyNumber>,
}

impl KeyTree {
    pub(crate) fn of(connection: &Connection, account: i64) -> Result<Self> {
        let sql = "SELECT number, parent FROM api_key WHERE account = ?1 AND parent IS NOT NULL";
        let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
        let pairs =
            all(&mut statement, [account], |row| Ok(Ok((KeyNumber::new(row.get(0)?), KeyNumber::new(row.get(1)?)))))?;
        Ok(Self { parents: pairs.into_iter().collect() })
    }

    /// A key and the keys above it.
    pub(crate) fn chain(&self, key: KeyNumber) -> impl Iterator<Item = KeyNumber> {
        // A parent is always older, so this ends.
        std::iter::successors(Some(key), |key| self.parents.get(key).copied().filter(|parent| parent < key))
    }
}
