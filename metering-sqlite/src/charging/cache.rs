//! The writer thread's cache, so that a busy account is not read again for each commit.
//!
//! It must never hold anything that another connection may have changed. SQLite's `data_version` shows whether another
//! connection, in this process or any other, has committed since; if so, the journal tells which accounts it changed,
//! and those are read again. Writes by the writer thread itself leave the same trace.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::HashMap;
use metering_core::access::{KeyHash, KeyNumber};
use metering_core::charging::{KeyMeter, KeyState, MeterState};
use metering_core::{AccountId, Timestamp, UsageLine};
use metering_sql::now;
use metering_sql::usage_lines::number_of;
use rusqlite::Connection;

use crate::access::keys::{self, Secret};
use crate::charging::cached_keys::CachedKeys;
use crate::error::{Result, store_error};
use crate::journal::fold::{Amount, Round};
use crate::journal::sequence::{insert, newest_in_sequence};
use crate::journal::{Change, Row, Snapshot, Touched, Unfolded};
use crate::rows::{METER_COLUMNS, first, meter_state, parse};
use crate::script::Statements;

/// Maximum number of cached accounts, and of cached secrets. Beyond that, the cache is cleared, so that its memory stays
/// bounded.
const MAX_ACCOUNTS: usize = 262_144;

/// The parts of an account that the charge path needs.
#[derive(Debug, Clone)]
pub(crate) struct CachedAccount {
    pub(crate) id: AccountId,
    pub(crate) state: MeterState,
    keys: CachedKeys,
}

/// The cache of the writer thread.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// `None` until the journal was read.
    data_version: Option<i64>,
    secrets: HashMap<KeyHash, Secret>,
    /// The inverse of `secrets`.
    secrets_of: HashMap<i64, Vec<KeyHash>>,
    accounts: HashMap<i64, CachedAccount>,
    lines: HashMap<UsageLine, i64>,
    templates: HashMap<i64, Arc<str>>,
    /// The newest id of ledger, activity and journal together.
    sequence: Option<i64>,
    pub(crate) unfolded: Unfolded,
    pub(crate) round: Round,
    /// Whether this process wrote to the journal.
    pub(crate) has_charged: bool,
}

impl Cache {
    /// Forgets what another connection may have changed. Call this first in each write transaction.
    pub(crate) fn sync(&mut self, connection: &Connection) -> Result<()> {
        let mut statement = connection.prepare_cached("PRAGMA data_version").map_err(store_error)?;
        let version: i64 = statement.query_row([], |row| row.get(0)).map_err(store_error)?;
        if self.accounts.len().max(self.secrets.len()) > MAX_ACCOUNTS {
            self.forget_accounts();
        }
        if self.data_version != Some(version) {
            let before = (self.unfolded.marker, self.unfolded.seen());
            self.read_journal(connection)?;
            if before == (self.unfolded.marker, self.unfolded.seen()) {
                // Something changed the tables without the journal: the sqlite3 program, for example.
                self.forget_accounts();
            }
            self.data_version = Some(version);
        }
        Ok(())
    }

    /// Reads the journal if it has not been read yet, before the write transaction, so that other writers need not wait.
    pub(crate) fn load(&mut self, connection: &mut Connection) -> Result<()> {
        if self.data_version.is_none() {
            let snapshot = connection.transaction().map_err(store_error)?;
            self.read_journal(&snapshot)?;
        }
        Ok(())
    }

    /// Changes when another connection has committed.
    pub(crate) const fn data_version(&self) -> Option<i64> {
        self.data_version
    }

    /// Panics unless the state of an account, as it was just decided, follows from the tables and the journal.
    pub(crate) fn assert_stored(&self, connection: &Connection, account: i64, decided: MeterState) -> Result<()> {
        let stored = read_account(connection, account)?.map(|cached| self.unfolded.state(account, cached.state));
        assert_eq!(stored.transpose()?, Some(decided), "account {account}");
        Ok(())
    }

    /// Reads what was added to the journal, and forgets the accounts that it names.
    pub(crate) fn read_journal(&mut self, connection: &Connection) -> Result<()> {
        match self.unfolded.sync(connection)? {
            Touched::Only(accounts) => accounts.iter().for_each(|account| self.forget(*account)),
            Touched::All => self.forget_accounts(),
        }
        self.sequence = None;
        Ok(())
    }

    /// Whether the journal has anything to fold or to delete, as far as is known here.
    pub(crate) fn has_unfolded(&self) -> bool {
        self.unfolded.len() > 0 || self.round.is_open(&self.unfolded)
    }

    /// Folds this many accounts. Returns whether anything is left.
    pub(crate) fn fold(&mut self, connection: &Connection, accounts: usize) -> Result<bool> {
        self.round.slice(connection, &mut self.unfolded, Amount::Accounts(accounts))
    }

    pub(crate) fn clear(&mut self) {
        *self = Self { has_charged: self.has_charged, ..Self::default() };
    }

    fn forget_accounts(&mut self) {
        self.accounts.clear();
        self.secrets.clear();
        self.secrets_of.clear();
    }

    /// Forgets an account.
    pub(crate) fn forget(&mut self, account: i64) {
        self.accounts.remove(&account);
        for secret in self.secrets_of.remove(&account).unwrap_or_default() {
            self.secrets.remove(&secret);
        }
    }

    /// What a secret that is not revoked belongs to.
    pub(crate) fn secret(&mut self, connection: &Connection, hash: &KeyHash) -> Result<Option<Secret>> {
        if let Some(known) = self.secrets.get(hash) {
            return Ok(Some(*known));
        }
        let found = keys::secret(connection, hash)?;
        if let Some(secret) = found {
            self.secrets.insert(*hash, secret);
            self.secrets_of.entry(secret.account).or_insert_with(|| Vec::with_capacity(1)).push(*hash);
        }
        Ok(found)
    }

    /// The state of a key, if it exists, of an account that [`Cache::account`] loaded in this transaction.
    pub(crate) fn key(&mut self, connection: &Connection, account: i64, key: KeyNumber) -> Result<Option<KeyState>> {
        let CachedAccount { id, keys, .. } = self.known_account(account);
        keys.get(connection, account, id, key)
    }

    /// Writes the meter of a key that [`Cache::key`] returned in this transaction.
    pub(crate) fn write_key_meter(
        &mut self,
        connection: &Connection,
        account: i64,
        key: KeyNumber,
        meter: KeyMeter,
    ) -> Result<()> {
        self.known_account(account).keys.set_meter(key, meter);
        keys::write_meter(connection, account, key, &meter).map_err(store_error)
    }

    pub(crate) fn account(&mut self, connection: &Connection, row: i64) -> Result<Option<&CachedAccount>> {
        Ok(match self.accounts.entry(row) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(entry) => match read_account(connection, row)? {
                Some(read) => {
                    let state = self.unfolded.state(row, read.state)?;
                    Some(&*entry.insert(CachedAccount { state, ..read }))
                }
                None => None,
            },
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
        let snapshot = Snapshot::new(connection, &mut self.unfolded);
        let (id, new) = now(number_of(&mut Statements::new(&snapshot), line))?;
        self.lines.insert(line.clone(), id);
        self.templates.insert(id, Arc::clone(&line.route_template));
        Ok((id, new))
    }

    /// The route template of a line that [`Cache::line`] returned.
    pub(crate) fn template(&self, line: i64) -> &str {
        self.templates.get(&line).map_or("", |template| template)
    }

    /// Appends a row with these changes to the journal.
    pub(crate) fn append(
        &mut self,
        connection: &Connection,
        changes: Vec<(i64, Change)>,
        now: Timestamp,
    ) -> Result<()> {
        let row = Row { after: self.unfolded.seen(), at: now.unix_millis(), changes };
        let newest = match self.sequence {
            Some(newest) => newest,
            None => newest_in_sequence(connection)?,
        };
        let id = newest + i64::try_from(row.changes.len()).unwrap_or(i64::MAX);
        insert(connection, id, &row)?;
        self.unfolded.note(id, row);
        self.has_charged = true;
        self.sequence = Some(id);
        Ok(())
    }
}

fn read_account(connection: &Connection, row: i64) -> Result<Option<CachedAccount>> {
    let sql =
        format!("SELECT a.org_id, {METER_COLUMNS} FROM account a JOIN meter m ON m.account = a.id WHERE a.id = ?1");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    first(&mut statement, [row], |row| {
        let (org_id, state): (String, _) = (row.get(0)?, meter_state(row, 1)?);
        let cached = || Ok(CachedAccount { id: parse(&org_id)?, state: state?, keys: CachedKeys::default() });
        Ok(cached())
    })
}
