//! The writer thread's cache, so that a busy account is not read again for each commit.
//!
//! It must never hold anything that another connection may have changed. SQLite's `data_version` shows whether another
//! connection, in this process or any other, has committed since; if so, the whole cache is cleared. A change by the
//! writer thread itself evicts only the account that it touched.

use std::collections::hash_map::Entry;

use foldhash::HashMap;
use metering_core::access::KeyHash;
use metering_core::charging::MeterState;
use metering_core::{AccountId, UsageLine};
use rusqlite::{Connection, params};

use crate::error::{Result, store_error};
use crate::rows::{METER_COLUMNS, first, meter_state, parse};

/// Maximum number of cached accounts. Beyond that, the cache is cleared, so that its memory stays bounded.
const MAX_ACCOUNTS: usize = 262_144;

/// The parts of an account that the charge path needs.
#[derive(Debug, Clone)]
pub(crate) struct CachedAccount {
    pub(crate) id: AccountId,
    pub(crate) state: MeterState,
    pub(crate) chain: ActivityChain,
}

/// The state of an account's chain of recent activity; see the schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActivityChain {
    pub(crate) head: Option<i64>,
    pub(crate) mark: Option<i64>,
    pub(crate) since_mark: u32,
    pub(crate) floor: Option<i64>,
}

/// The cache of the writer thread.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    data_version: i64,
    keys: HashMap<KeyHash, i64>,
    /// The inverse of `keys`: an account has at most one live key.
    key_of: HashMap<i64, KeyHash>,
    accounts: HashMap<i64, CachedAccount>,
    lines: HashMap<UsageLine, i64>,
    /// The newest id of ledger and activity together.
    sequence: Option<i64>,
    /// The id that the sweep of the activity log has reached in its current round.
    pub(crate) swept_to: Option<i64>,
}

impl Cache {
    /// Clears the cache if another connection has committed. Call this first in each write transaction.
    pub(crate) fn sync(&mut self, connection: &Connection) -> Result<()> {
        let mut statement = connection.prepare_cached("PRAGMA data_version").map_err(store_error)?;
        let version: i64 = statement.query_row([], |row| row.get(0)).map_err(store_error)?;
        if version != self.data_version || self.accounts.len() > MAX_ACCOUNTS {
            self.clear();
            self.data_version = version;
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        *self = Self { data_version: self.data_version, swept_to: self.swept_to, ..Self::default() };
    }

    pub(crate) fn forget_sequence(&mut self) {
        self.sequence = None;
    }

    pub(crate) fn forget_account(&mut self, connection: &Connection, id: &AccountId) -> Result<()> {
        let mut statement =
            connection.prepare_cached("SELECT id FROM account WHERE org_id = ?1").map_err(store_error)?;
        if let Some(row) = first(&mut statement, [id.as_str()], |row| row.get(0).map(Ok))? {
            self.accounts.remove(&row);
            if let Some(key) = self.key_of.remove(&row) {
                self.keys.remove(&key);
            }
        }
        Ok(())
    }

    /// The account of a live key.
    pub(crate) fn account_of_key(&mut self, connection: &Connection, key: &KeyHash) -> Result<Option<i64>> {
        if let Some(account) = self.keys.get(key) {
            return Ok(Some(*account));
        }
        let sql = "SELECT account FROM api_key WHERE hash = ?1 AND revoked_at IS NULL";
        let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
        let account = first(&mut statement, [key.as_bytes()], |row| row.get(0).map(Ok))?;
        if let Some(account) = account {
            self.keys.insert(*key, account);
            self.key_of.insert(account, *key);
        }
        Ok(account)
    }

    pub(crate) fn account(&mut self, connection: &Connection, row: i64) -> Result<Option<&CachedAccount>> {
        Ok(match self.accounts.entry(row) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(entry) => read_account(connection, row)?.map(|account| &*entry.insert(account)),
        })
    }

    /// An account that [`Cache::account`] loaded in this transaction.
    pub(crate) fn known_account(&mut self, row: i64) -> &mut CachedAccount {
        self.accounts.get_mut(&row).expect("a changed account was loaded in the same transaction")
    }

    /// The id of a usage line, and whether this call inserted the line.
    pub(crate) fn line(&mut self, connection: &Connection, line: &UsageLine) -> Result<(i64, bool)> {
        if let Some(id) = self.lines.get(line) {
            return Ok((*id, false));
        }
        let values = params![&*line.route_template, &*line.http_method, line.source.as_str()];
        let select = "SELECT id FROM usage_line WHERE route_template = ?1 AND http_method = ?2 AND source = ?3";
        let mut statement = connection.prepare_cached(select).map_err(store_error)?;
        let known = first(&mut statement, values, |row| row.get(0).map(Ok))?;
        let (id, new) = match known {
            Some(id) => (id, false),
            None => {
                let insert = "INSERT INTO usage_line (route_template, http_method, source) VALUES (?1, ?2, ?3)";
                connection.prepare_cached(insert).and_then(|mut s| s.insert(values)).map_err(store_error)?;
                (connection.last_insert_rowid(), true)
            }
        };
        self.lines.insert(line.clone(), id);
        Ok((id, new))
    }

    /// The next id in the sequence that ledger and activity share.
    pub(crate) fn next_in_sequence(&mut self, connection: &Connection) -> Result<i64> {
        let newest = match self.sequence {
            Some(newest) => newest,
            None => newest_in_sequence(connection)?,
        };
        self.sequence = Some(newest + 1);
        Ok(newest + 1)
    }
}

/// The newest id used by the ledger or the activity log. Neither ever deletes its newest row.
pub(crate) fn newest_in_sequence(connection: &Connection) -> Result<i64> {
    let sql = "SELECT max(coalesce((SELECT max(id) FROM activity), 0), coalesce((SELECT max(id) FROM ledger), 0))";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    statement.query_row([], |row| row.get(0)).map_err(store_error)
}

fn read_account(connection: &Connection, row: i64) -> Result<Option<CachedAccount>> {
    let sql = format!(
        "SELECT a.org_id, m.activity_head, m.activity_mark, m.activity_since_mark, m.activity_floor, {METER_COLUMNS} \
         FROM account a JOIN meter m ON m.account = a.id WHERE a.id = ?1"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, [row], |row| {
        let org_id: String = row.get(0)?;
        let (head, mark) = (row.get(1)?, row.get(2)?);
        let chain = ActivityChain { head, mark, since_mark: row.get(3)?, floor: row.get(4)? };
        let state = meter_state(row, 5)?;
        Ok(parse(&org_id).map(|id| CachedAccount { id, state, chain }))
    })
}
