//! The end of an open log, in memory: new leaves are appended to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metering_core::charging::UsageKind;
use metering_core::store::{
    AccountRow, LogEpoch, LogStore, Logged, LoggedAccount, NewLogged, StoredBundle, UnloggedPosting,
};
use metering_core::{Credits, Timestamp, UsageLine};
use metering_log::tree::{BuiltTile, TreeBuilder, TreeHash, resume_tiles, tile_bytes};

use super::accounts::Accounts;
use super::fault::SequencerError;
use crate::bundle::{BUNDLE_LEAVES, Bundle, ChainHead, Leaf};
use crate::leaf::Posting;
use crate::lookup::LogReadError;
use crate::names::Names;
use crate::reader::LogReader;

/// How many bundles to read at once.
const PAGE: u32 = 64;
/// The next sweep begins after this many leaves, or this long after the last one. That bounds what a restart reads.
const SWEEP_LEAVES: u64 = 4_000_000;
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);
/// How far in the future a leaf's time can be. One leaf of the year 2100, from a wrong clock or an import, would
/// otherwise close all periods until then, in the statements of all accounts.
const AHEAD: Duration = Duration::from_secs(60 * 60);
/// How many accounts a step without leaves sweeps. Small in tests, so that a sweep takes several steps.
const SWEEP_LEAST: usize = if cfg!(debug_assertions) { 4 } else { 1_024 };

/// The end of a log.
#[derive(Debug)]
pub(super) struct OpenLog {
    epoch: u32,
    tree: TreeBuilder,
    /// The bundle that is not full.
    bundle: Bundle,
    /// The latest time among all leaves.
    until: Timestamp,
    names: Names,
    lines: HashMap<UsageLine, u32>,
    next_line: u32,
    accounts: Accounts,
    /// The size when the current sweep began, or else the last one.
    swept_from: u64,
    swept_at: Timestamp,
}

/// The rows that leaves add to the store.
#[derive(Debug, Default)]
pub(super) struct Growth {
    pub(super) bundles: Vec<StoredBundle>,
    pub(super) tiles: Vec<(u8, u64, Vec<u8>)>,
    pub(super) accounts: Vec<NewLogged>,
    pub(super) lines: Vec<(u32, UsageLine)>,
}

/// What a step sweeps.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) accounts: Vec<(u32, ChainHead)>,
    /// The size when the sweep began, if it is complete.
    pub(super) from: Option<u64>,
}

impl OpenLog {
    /// Reads the end of a log: the partial tiles, and the bundles since the last sweep.
    pub(super) async fn resume(
        store: &Arc<dyn LogStore>,
        epoch: &LogEpoch,
        now: Timestamp,
    ) -> Result<Self, SequencerError> {
        let tiles = LogReader::new(Arc::clone(store)).tiles(epoch, resume_tiles(epoch.size)).await?;
        let tree = TreeBuilder::resume(&tiles, epoch.size).map_err(LogReadError::from)?;
        let mut log = Self {
            epoch: epoch.number,
            tree,
            bundle: Bundle::default(),
            until: Timestamp::from_unix_millis(i64::MIN),
            names: Names::new(epoch),
            lines: HashMap::new(),
            next_line: 0,
            accounts: Accounts::default(),
            swept_from: epoch.swept_from,
            swept_at: now,
        };
        if *log.tree.root().as_bytes() != epoch.root {
            return Err(log.damaged("its tiles do not hash to its root"));
        }
        for (number, line) in store.logged_lines().await? {
            log.names.add_line(number, line.clone());
            log.next_line = log.next_line.max(number.saturating_add(1));
            log.lines.insert(line, number);
        }
        log.replay(&**store).await?;
        Ok(log)
    }

    async fn replay(&mut self, store: &dyn LogStore) -> Result<(), SequencerError> {
        let (size, full) = (self.tree.size(), BUNDLE_LEAVES as u64);
        let end = size.div_ceil(full);
        // Include the last bundle even if it was swept, for its leaves and time.
        let mut next = (self.swept_from / full).min(end.saturating_sub(1));
        while next < end {
            let first = next;
            for stored in store.log_bundles(self.epoch, next, PAGE).await? {
                if stored.index != next || next == end {
                    break;
                }
                let unpacked = Bundle::unpack(&stored.leaves);
                self.bundle = unpacked.map_err(|problem| LogReadError::bundle(self.epoch, next, problem))?;
                if next + 1 == end {
                    self.cut_bundle()?;
                }
                self.until = stored.until;
                for (number, head) in self.bundle.heads() {
                    self.accounts.set_head(*number, *head);
                }
                next += 1;
            }
            if next == first {
                return Err(self.damaged(format!("bundle {next} is missing")));
            }
        }
        if self.bundle.is_full() {
            self.bundle = Bundle::default();
        }
        Ok(())
    }

    /// Truncates the last bundle to the leaves that it had at this size. Another node may have appended more meanwhile:
    /// then the next step is not appended.
    fn cut_bundle(&mut self) -> Result<(), SequencerError> {
        let last = self.size().saturating_sub(1) % BUNDLE_LEAVES as u64;
        let leaves = usize::try_from(last).unwrap_or(BUNDLE_LEAVES) + 1;
        match self.bundle.leaves().len() {
            stored if stored == leaves => {}
            stored if stored > leaves => {
                self.bundle = self.bundle.first(leaves).map_err(|fault| self.damaged(fault))?;
            }
            _ => return Err(self.damaged("its last bundle has too few leaves")),
        }
        Ok(())
    }

    /// Whether this matches the end of the log in the store.
    pub(super) fn is_at(&self, epoch: &LogEpoch) -> bool {
        let (size, root) = (self.tree.size(), self.tree.root());
        self.epoch == epoch.number && size == epoch.size && *root.as_bytes() == epoch.root
    }

    pub(super) fn size(&self) -> u64 {
        self.tree.size()
    }

    pub(super) fn root(&self) -> TreeHash {
        self.tree.root()
    }

    /// The accounts of these postings whose states must be read first.
    pub(super) fn unknown(&mut self, postings: &[UnloggedPosting]) -> Vec<AccountRow> {
        self.names.trim();
        let is_known = |row: &AccountRow| {
            let number = self.accounts.number(*row);
            number.is_some_and(|number| self.accounts.head(number).is_some() && self.names.account(number).is_ok())
        };
        let mut rows: Vec<AccountRow> = postings.iter().filter_map(|posting| posting.account).collect();
        rows.sort_unstable();
        rows.dedup();
        rows.retain(|row| !is_known(row));
        rows
    }

    /// Begins a sweep if it is time.
    pub(super) fn begin_sweep(&mut self, now: Timestamp) {
        let is_due = self.size() - self.swept_from >= SWEEP_LEAVES || now >= self.swept_at.saturating_add(SWEEP_EVERY);
        if is_due && !self.accounts.are_swept() && self.accounts.have_changed() {
            self.accounts.begin_sweep();
            (self.swept_from, self.swept_at) = (self.size(), now);
        }
    }

    /// How many accounts a step sweeps when it appends this many leaves: more than it can change, so sweeps always
    /// complete.
    pub(super) fn sweep(&mut self, leaves: usize) -> Swept {
        if !self.accounts.are_swept() {
            return Swept::default();
        }
        let accounts = self.accounts.sweep(SWEEP_LEAST.max(leaves.saturating_mul(2)));
        Swept { accounts, from: (!self.accounts.are_swept()).then_some(self.swept_from) }
    }

    /// Appends postings. `loaded` are the states of the [unknown](Self::unknown) accounts, `next` the next account's number.
    pub(super) fn append(
        &mut self,
        postings: Vec<UnloggedPosting>,
        loaded: &[LoggedAccount],
        mut next: u32,
        now: Timestamp,
    ) -> Result<Growth, SequencerError> {
        let (from, mut growth) = (self.size(), Growth::default());
        for account in loaded {
            let number = match account.number {
                Some(number) => number,
                None => {
                    growth.accounts.push(NewLogged { row: account.row, number: next });
                    next = next.checked_add(1).ok_or_else(|| self.damaged("it has too many accounts"))?;
                    next - 1
                }
            };
            self.names.add_account(number, &account.id);
            self.accounts.add(account, number);
        }
        let latest = now.saturating_add(AHEAD);
        for posting in postings {
            let posting = UnloggedPosting { at: posting.at.min(latest), ..posting };
            let leaf = self.leaf(posting, &mut growth.lines)?;
            self.push(leaf, &mut growth)?;
        }
        if self.size() > from {
            if !self.bundle.leaves().is_empty() {
                growth.bundles.push(self.stored_bundle(&self.bundle, None));
            }
            let size = self.size();
            let grew = |level: u8| size >> (8 * u32::from(level)) > from >> (8 * u32::from(level));
            let partial = self.tree.partial_tiles().filter(|built| built.tile.level() > 0 && grew(built.tile.level()));
            growth.tiles.extend(partial.map(|built| stored_tile(&built)));
        }
        Ok(growth)
    }

    fn leaf(
        &mut self,
        UnloggedPosting { account, at, what }: UnloggedPosting,
        new_lines: &mut Vec<(u32, UsageLine)>,
    ) -> Result<Leaf, SequencerError> {
        let (amount, posting) = match what {
            Logged::Public(text) => return Ok(Leaf::Public { at, text }),
            Logged::Opening(funds) => (Some(funds), Posting::Opening),
            Logged::Ledger { id, kind, amount, tx } => (Some(amount), Posting::Ledger { id, kind, tx }),
            Logged::Imported(used) => (used.checked_neg(), Posting::Imported),
            Logged::Usage { line, day, key, kind, calls, amount } => {
                let line = self.line(line, new_lines)?;
                (change(kind, amount), Posting::Usage { line, kind, day, key, calls })
            }
        };
        let number = account.and_then(|row| self.accounts.number(row));
        let state = number.and_then(|number| Some((number, self.accounts.head(number)?)));
        let (account, before) =
            state.ok_or_else(|| self.damaged("a posting belongs to an account that does not exist"))?;
        let after = amount.and_then(|amount| Some((amount, before.after(amount)?)));
        let (amount, after) = after.ok_or_else(|| self.damaged("the funds of an account are out of range"))?;
        self.accounts.set_head(account, after);
        Ok(Leaf::Posted { account, before, at, amount, posting })
    }

    /// The log's number of a line, which may be new.
    fn line(&mut self, line: UsageLine, new_lines: &mut Vec<(u32, UsageLine)>) -> Result<u32, SequencerError> {
        if let Some(number) = self.lines.get(&line) {
            return Ok(*number);
        }
        let number = self.next_line;
        self.next_line = number.checked_add(1).ok_or_else(|| self.damaged("it has too many usage lines"))?;
        self.names.add_line(number, line.clone());
        self.lines.insert(line.clone(), number);
        new_lines.push((number, line));
        Ok(number)
    }

    fn push(&mut self, leaf: Leaf, growth: &mut Growth) -> Result<(), SequencerError> {
        let opened = leaf.open(&self.names).map_err(|unknown| self.damaged(unknown))?;
        self.until = self.until.max(leaf.at());
        self.bundle.push(leaf).map_err(|fault| self.damaged(fault))?;
        let built = self.tree.append(TreeHash::leaf(&opened.entry()));
        if self.bundle.is_full() {
            let full = std::mem::take(&mut self.bundle);
            // Its hash becomes the last one of the tile above, which may then be full too.
            let above = built.get(1).cloned().or_else(|| self.tree.partial_tiles().next());
            let hash = above.and_then(|above| above.hashes.last().copied());
            growth.bundles.push(self.stored_bundle(&full, hash));
            growth.tiles.extend(built.iter().filter(|built| built.tile.level() > 0).map(stored_tile));
        }
        Ok(())
    }

    /// The bundle that ends with the last leaf.
    fn stored_bundle(&self, bundle: &Bundle, hash: Option<TreeHash>) -> StoredBundle {
        let index = self.size().saturating_sub(1) / BUNDLE_LEAVES as u64;
        StoredBundle { index, until: self.until, hash: hash.map(|hash| *hash.as_bytes()), leaves: bundle.pack() }
    }

    fn damaged(&self, problem: impl ToString) -> SequencerError {
        SequencerError::Damaged { epoch: self.epoch, size: self.size(), problem: problem.to_string() }
    }
}

/// The change of the funds by usage.
fn change(kind: UsageKind, amount: Credits) -> Option<Credits> {
    if kind == UsageKind::Refunded { Some(amount) } else { amount.checked_neg() }
}

fn stored_tile(built: &BuiltTile) -> (u8, u64, Vec<u8>) {
    (built.tile.level(), built.tile.index(), tile_bytes(&built.hashes))
}
