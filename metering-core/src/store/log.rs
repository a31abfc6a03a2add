//! The part of the storage contract for the log of every posting (ADR 55).
//!
//! A store keeps the log's data, and the commits that are not in the log yet. It neither hashes nor signs: the
//! sequencer does, through [`LogStore::unlogged`] and [`LogStore::append_log`].

mod origin;
mod previous;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use zeroize::Zeroizing;

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::chains::transaction::TxRef;
use crate::charging::tally::UsageKind;
use crate::clock::{Day, Timestamp};
use crate::money::credits::Credits;
use crate::money::ledger::LedgerKind;
use crate::named_enum::named_enum;
use crate::prices::PriceVersion;
use crate::store::{Store, StoreError};
use crate::usage::UsageLine;
pub use origin::{log_origin, origin_epoch};
pub use previous::{MalformedPreviousLog, PreviousLog};

/// Stores the log of every posting, and the postings that are not in it yet.
///
/// While a log is open, every commit is either in the funds that it began with or in [`LogStore::unlogged`], until
/// [`LogStore::append_log`] takes it. An account's usage keeps its order, and so do its ledger entries.
#[async_trait]
pub trait LogStore: Store {
    /// Begins a log, or a new epoch of it, and records every account with its funds in the same transaction. The
    /// previous epoch ends; these funds include postings that were not in it yet. `None`, and nothing changes, if the
    /// current epoch is not `after`, or another one has the same origin. If there is none yet, `after` is the last
    /// number of the store that was moved here.
    async fn begin_log(
        &self,
        new: NewEpoch,
        after: Option<u32>,
        now: Timestamp,
    ) -> Result<Option<LogEpoch>, StoreError>;

    /// All epochs in order. At most the last one is open.
    async fn log_epochs(&self) -> Result<Vec<LogEpoch>, StoreError>;

    /// Claims or extends the lease of the sequencer for a node. The open epoch afterwards; `None` while another node
    /// has the lease, or no log is open. A `lease` of zero releases the node's claim, so others can claim immediately,
    /// and returns `None`.
    async fn claim_log(&self, node: &str, lease: Duration, now: Timestamp) -> Result<Option<LogEpoch>, StoreError>;

    /// From one snapshot, what is committed but not in the log yet: whole commits, at most `limit` postings; a larger
    /// commit comes alone. Changes nothing.
    ///
    /// Public entries come first, then openings, then the others by time: commits keep their order among themselves,
    /// and so do ledger entries. At the same millisecond, ledger entries come before commits. [`Unlogged::taken`] may
    /// advance without postings. Such a step must be appended too, since the store keeps postings until they are.
    async fn unlogged(&self, epoch: &LogEpoch, limit: u32) -> Result<Unlogged, StoreError>;

    /// The states of accounts as they were last swept, in the order of `rows`. One without a log number has no leaves and
    /// no funds in the log. Rows that no account has are left out.
    async fn logged_accounts(&self, epoch: u32, rows: &[AccountRow]) -> Result<Vec<LoggedAccount>, StoreError>;

    /// The state of one account, as in [`LogStore::logged_accounts`]; `None` if it has no log number.
    async fn logged_account(&self, epoch: u32, account: &AccountId) -> Result<Option<LoggedAccount>, StoreError>;

    /// The log's numbers of usage lines, in order. Epochs share them.
    async fn logged_lines(&self) -> Result<Vec<(u32, UsageLine)>, StoreError>;

    /// The states of accounts by their numbers in the log, as [`LogStore::logged_accounts`] has them, in order. Numbers
    /// that no account has are left out.
    async fn numbered_accounts(&self, epoch: u32, numbers: &[u32]) -> Result<Vec<LoggedAccount>, StoreError>;

    /// Appends to the log if its size still is [`LogStep::from`], the epoch is open, and the node has its lease. Otherwise
    /// `false`, and nothing changes.
    async fn append_log(&self, step: LogStep) -> Result<bool, StoreError>;

    /// Stores the signed note of a checkpoint. A size that is larger than the log's, or not larger than that of the stored
    /// checkpoint, changes nothing, except that the note of the same size is replaced: it may have more cosignatures.
    async fn publish_checkpoint(&self, epoch: u32, size: u64, note: String) -> Result<(), StoreError>;

    /// At most `limit` bundles, starting at the index `first`.
    async fn log_bundles(&self, epoch: u32, first: u64, limit: u32) -> Result<Vec<StoredBundle>, StoreError>;

    /// The hashes of a tile of level 1 or more, as far as there are any.
    async fn log_tile(&self, epoch: u32, level: u8, index: u64) -> Result<Option<Vec<u8>>, StoreError>;

    /// The indexes of the bundles from the one with the first leaf of `from` or later to the one with the first leaf of
    /// `until` or later, or to the last, of those that are not pruned. Leaves need not be in the order of their times.
    async fn bundles_of(&self, epoch: u32, from: Timestamp, until: Timestamp) -> Result<Range<u64>, StoreError>;

    /// Deletes at most `limit` bundles with indexes below `below`, and returns how many. The last bundle is kept, and
    /// so are all bundles that the sequencer reads when it restarts. From the call on, [`LogEpoch::minimum`] is above
    /// them.
    async fn prune_log(&self, epoch: u32, below: u64, limit: u32) -> Result<u64, StoreError>;
}

/// The row of an account in a database. Only the log uses it to identify accounts: an export has other rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountRow(pub i64);

/// The secret from which the salts of a log's leaves are derived. Anyone who has it can open every leaf.
#[derive(Clone, PartialEq, Eq)]
pub struct LogSecret(Zeroizing<[u8; Self::BYTES]>);

impl LogSecret {
    /// How many bytes it has.
    pub const BYTES: usize = 32;

    /// The secret with these bytes.
    #[must_use]
    pub fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub fn expose(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Debug for LogSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogSecret(…)")
    }
}

named_enum! {
    /// The reason for a new epoch.
    pub enum EpochReason {
        /// It is the store's first.
        Init = "init",
        /// The store was restored from a backup.
        Restored = "restored",
        /// The store was moved to another database.
        Moved = "moved",
    }
}

/// An epoch to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEpoch {
    /// Its origin, as its checkpoints have it. No other epoch has the same.
    pub origin: String,
    /// Its secret.
    pub secret: LogSecret,
    /// Why it begins.
    pub reason: EpochReason,
    /// The end of a moved store's log in the other database. Not used by a store that has an epoch: its last one comes
    /// before the new one.
    pub previous: Option<PreviousLog>,
}

/// An epoch: a log with an origin of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEpoch {
    /// Its number: 1 for the first one, and without gaps. A moved store has only the epochs since the move.
    pub number: u32,
    /// Its origin.
    pub origin: String,
    /// Its secret.
    pub secret: LogSecret,
    /// The reason for it.
    pub reason: EpochReason,
    /// The end of the log that it follows: the epoch before, or the one in the database that the store was moved from.
    pub previous: Option<PreviousLog>,
    /// When it began.
    pub began_at: Timestamp,
    /// When the next one began.
    pub ended_at: Option<Timestamp>,
    /// How many leaves it has.
    pub size: u64,
    /// The root of their tree.
    pub root: [u8; 32],
    /// The index of the first bundle that was not pruned.
    pub minimum: u64,
    /// How many accounts have a log number; also the next number.
    pub accounts: u32,
    /// Its contents.
    pub taken: Taken,
    /// The size when the last complete sweep began: accounts with no later leaf are as [`LogStore::logged_accounts`] says.
    pub swept_from: u64,
    /// The size and the signed note of the last published checkpoint.
    pub checkpoint: Option<(u64, String)>,
}

impl LogEpoch {
    /// Its last head, for the log that follows it.
    #[must_use]
    pub fn head(&self) -> PreviousLog {
        PreviousLog { origin: self.origin.clone(), size: self.size, root: self.root }
    }
}

/// How much of a store's data is in the log. Only the store interprets the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// The last row of the charge journal.
    pub journal: i64,
    /// The last ledger entry.
    pub ledger: i64,
    /// The last price version.
    pub prices: u32,
    /// The last account whose opening funds are in the log.
    pub openings: i64,
}

/// Committed postings that are not in a log yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unlogged {
    /// In the order in which the log should have them.
    pub postings: Vec<UnloggedPosting>,
    /// For [`LogStep::taken`], once all of them are in it.
    pub taken: Taken,
    /// For [`LogStep::batches`].
    pub batches: Vec<i64>,
}

/// A posting that is not in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnloggedPosting {
    /// Its account; `None` for a public entry.
    pub account: Option<AccountRow>,
    /// When it was committed.
    pub at: Timestamp,
    /// Its contents.
    pub what: Logged,
}

/// The contents of a posting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Logged {
    /// The funds of an account when the epoch began: its balance and open holds.
    Opening(Credits),
    /// A ledger entry.
    Ledger {
        /// Its number.
        id: i64,
        /// Its kind.
        kind: LedgerKind,
        /// The change to the balance.
        amount: Credits,
        /// The payment behind it.
        tx: Option<TxRef>,
    },
    /// Usage of one line, key, day and kind in one commit.
    Usage {
        /// The line.
        line: UsageLine,
        /// The day that it is booked on.
        day: Day,
        /// The key.
        key: KeyNumber,
        /// How it came about.
        kind: UsageKind,
        /// How many requests, zero or more.
        calls: u64,
        /// Their price, zero or more.
        amount: Credits,
    },
    /// Usage of an imported account from before the import. Negative if refunds exceeded it.
    Imported(Credits),
    /// A public entry, in the log's form.
    Public(String),
}

impl Logged {
    /// The prefix of public entries; none may have the length of a commitment.
    const PUBLIC: &str = "metering-public-v1";

    /// The public entry of a price version.
    #[must_use]
    pub fn prices(version: &PriceVersion) -> Self {
        let PriceVersion { number, hash, since, .. } = version;
        Self::Public(format!("{}\nprices {} {} {hash}", Self::PUBLIC, number.0, since.unix_millis()))
    }

    /// The first entry of an epoch that follows another log.
    #[must_use]
    pub fn epoch(previous: &PreviousLog, reason: EpochReason) -> Self {
        let PreviousLog { origin, size, .. } = previous;
        Self::Public(format!("{}\nepoch {origin} {size} {} {reason}", Self::PUBLIC, previous.root_text()))
    }
}

/// An account, as a log identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedAccount {
    /// Its row.
    pub row: AccountRow,
    /// Its id.
    pub id: AccountId,
    /// Its number in the log; `None` before its first leaf.
    pub number: Option<u32>,
    /// How many leaves it has; also the next leaf's number.
    pub leaves: u64,
    /// Its funds after the last one.
    pub funds: Credits,
}

/// An account that gets its log number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewLogged {
    /// Its row.
    pub row: AccountRow,
    /// Its number in the log.
    pub number: u32,
}

/// 256 leaves of a log, or fewer at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBundle {
    /// Its index.
    pub index: u64,
    /// The latest time of its leaves and of all earlier ones.
    pub until: Timestamp,
    /// The hash of its tile, once it is full.
    pub hash: Option<[u8; 32]>,
    /// Its leaves. The store does not look into them.
    pub leaves: Vec<u8>,
}

/// The data that one step of the sequencer adds to a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStep {
    /// The epoch.
    pub epoch: u32,
    /// The node, which must have the lease.
    pub node: String,
    /// The size that the step was built on.
    pub from: u64,
    /// The size after it.
    pub size: u64,
    /// The root after it.
    pub root: [u8; 32],
    /// Bundles that are new or have more leaves.
    pub bundles: Vec<StoredBundle>,
    /// Tiles that are new or have more hashes: level, index and hashes.
    pub tiles: Vec<(u8, u64, Vec<u8>)>,
    /// Accounts that get their number.
    pub accounts: Vec<NewLogged>,
    /// Lines that get their number.
    pub lines: Vec<(u32, UsageLine)>,
    /// See [`Unlogged::taken`].
    pub taken: Taken,
    /// See [`Unlogged::batches`].
    pub batches: Vec<i64>,
    /// States of accounts to write. An account without a number is left out.
    pub swept: Vec<LoggedAccount>,
    /// The size when a sweep began, if it is complete with this step.
    pub swept_from: Option<u64>,
}
