//! The writer thread's cache, so that a busy account is not read again for each commit.
//!
//! It must never hold anything that another connection may have changed. SQLite's `data_version` shows whether another
//! connection, in this process or any other, has committed since; if so, the journal tells which accounts it changed,
//! and those are read again. Writes by the writer thread itself leave the same trace.

use std::hint::black_box;
use std::sync::Arc;

use foldhash::HashMap;
use metering_core::access::{KeyHash, KeyNumber};
use metering_core::charging::{KeyMeter, KeyState, MeterState, Posting};
use metering_core::{Timestamp, UsageLine};
use metering_sql::now;
use metering_sql::usage_lines::number_of;
use rusqlite::Connection;

use crate::access::keys::{self, Secret};
use crate::charging::cached_account::CachedAccount;
use crate::charging::generations::Generations;
use crate::error::{Result, store_error};
use crate::journal::fold::{Amount, Round};
use crate::journal::sequence::{insert, newest_in_sequence};
use crate::journal::{Change, Row, Snapshot, Touched, Unfolded};
use crate::script::Statements;

/// A generation of the cache ends when this many accounts or secrets were used in it; entries that were not used since
/// the previous one are then dropped. So at most twice as many are cached, plus one batch. An account with one secret
/// takes about 240 bytes. Slightly less than seven eighths of a power of two: hash maps are then well filled.
const GENERATION: usize = 212_992;

/// The cache is cleared before the numbers of loads repeat.
const MAX_LOADS: u32 = u32::MAX / 2;

/// With so many cached accounts, most of what a batch reads is not in the processor's caches.
const MANY: usize = 16_384;

/// A secret that is not revoked.
#[derive(Debug, Clone, Copy)]
struct CachedSecret {
    account: i64,
    key: KeyNumber,
    /// Valid while the cached account has this load number.
    load: u32,
}

const _: () = assert!(size_of::<CachedSecret>() <= 16, "there may be hundreds of thousands");

/// The cache of the writer thread.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// `None` until the journal was read.
    data_version: Option<i64>,
    /// Secrets by the bytes of their hashes.
    secrets: Generations<[u8; 32], CachedSecret>,
    /// When secrets stop working: only those that were replaced with a grace period.
    expiring: HashMap<KeyHash, Timestamp>,
    accounts: Generations<i64, CachedAccount>,
    /// How many accounts were loaded since all were forgotten.
    loads: u32,
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
        if self.accounts.young().max(self.secrets.young()) > GENERATION {
            self.age();
        }
        if self.loads > MAX_LOADS {
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

    /// Panics unless the state of an account that was just decided follows from the tables and the journal.
    pub(crate) fn assert_stored(&self, connection: &Connection, account: i64, decided: MeterState) -> Result<()> {
        let stored =
            CachedAccount::read(connection, account)?.map(|cached| self.unfolded.state(account, cached.state()));
        assert_eq!(stored.transpose()?, Some(decided), "account {account}");
        Ok(())
    }

    /// Reads what was added to the journal, and forgets the accounts that it names.
    pub(crate) fn read_journal(&mut self, connection: &Connection) -> Result<()> {
        match self.unfolded.sync(connection)? {
            // Nothing is cached before the first read, which may be of millions of changes.
            Touched::Only(_) if self.accounts.len() == 0 => {}
            Touched::Only(accounts) => accounts.iter().for_each(|account| self.forget(*account)),
            Touched::All => self.forget_accounts(),
        }
        self.sequence = None;
        Ok(())
    }

    /// Whether the journal has anything to fold or to delete, as far as this process knows.
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
        self.expiring.clear();
        self.loads = 0;
    }

    /// Forgets the accounts and secrets that were not used for a whole generation.
    fn age(&mut self) {
        self.accounts.age();
        self.secrets.age();
        if self.expiring.len() > GENERATION {
            self.forget_accounts();
        }
    }

    /// Forgets an account, and with it its secrets.
    pub(crate) fn forget(&mut self, account: i64) {
        self.accounts.remove(&account);
    }

    /// Reads what the charges of a batch need from memory, in short loops: a processor then fetches it for several charges
    /// at once. While a charge is decided, it would wait for each piece by itself, which takes longer than deciding it.
    pub(crate) fn read_ahead(&self, postings: &[Posting]) {
        if self.accounts.len() < MANY {
            return;
        }
        let account = |posting: &Posting| match posting {
            Posting::Charge(charge) => self.secrets.peek(charge.key.as_bytes()).map(|secret| secret.account),
            Posting::Refund(_) | Posting::Settle(_) | Posting::Hold(_) => None,
        };
        let accounts: Vec<i64> = postings.iter().filter_map(account).collect();
        for account in accounts {
            let cached = self.accounts.peek(&account).map_or(0, CachedAccount::read_ahead);
            _ = black_box(cached.wrapping_add(self.unfolded.read_ahead(account)));
        }
    }

    /// The account and key of a secret that is not revoked. Loads the account too.
    pub(crate) fn secret(&mut self, connection: &Connection, hash: &KeyHash) -> Result<Option<Secret>> {
        if let Some(CachedSecret { account, key, load }) = self.secrets.get(hash.as_bytes()).copied()
            && self.accounts.get(&account).is_some_and(|account| account.keys.load == load)
        {
            return Ok(Some(Secret { account, key, expires_at: self.expiring.get(hash).copied() }));
        }
        let found = keys::secret(connection, hash)?;
        if let Some(Secret { account, key, expires_at }) = found
            && let Some(load) = self.account(connection, account)?.map(|account| account.keys.load)
        {
            if let Some(at) = expires_at {
                self.expiring.insert(*hash, at);
            } else {
                self.expiring.remove(hash);
            }
            self.secrets.insert(*hash.as_bytes(), CachedSecret { account, key, load });
        }
        Ok(found)
    }

    /// The state of a key, if it exists, of an account that [`Cache::account`] loaded in this transaction.
    pub(crate) fn key(&mut self, connection: &Connection, account: i64, key: KeyNumber) -> Result<Option<KeyState>> {
        self.known_account(account).keys.get(connection, account, key)
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
        if self.accounts.get(&row).is_none() {
            let Some(mut read) = CachedAccount::read(connection, row)? else { return Ok(None) };
            read.set_state(self.unfolded.state(row, read.state())?);
            self.loads += 1;
            read.keys.load = self.loads;
            self.accounts.insert(row, read);
        }
        Ok(self.accounts.get(&row).map(|account| &*account))
    }

    /// An account that [`Cache::account`] loaded in this transaction.
    pub(crate) fn known_account(&mut self, row: i64) -> &mut CachedAccount {
        self.accounts.get(&row).expect("a changed account was loaded in the same transaction")
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
