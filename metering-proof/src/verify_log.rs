//! Recomputes a store's log, from its leaves to its roots, and compares it with the funds of the accounts.
//!
//! Bundles are read page by page. Memory use is limited to the end of each account's leaf chain and the tiles of the
//! right edge.

use std::collections::{BTreeMap, HashMap};

use metering_core::StoreError;
use metering_core::store::{LogEpoch, LogStore, StoredBundle};
use metering_log::tree::{Leaves, LogPath, Tile, TreeHash, read_root, read_tile, root_tiles};

use crate::bundle::{BUNDLE_LEAVES, Bundle, ChainHead, Leaf};
use crate::lookup::{LogReadError, Lookup};

/// How many bundles, and how many accounts, to read at once.
const PAGE: u32 = 64;
const ACCOUNTS_PAGE: u32 = 1_000;
/// Further faults in an epoch add no information.
const FAULTS_MAX: usize = 100;

/// A fault in a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFault {
    /// A bundle is missing, or cannot be read.
    #[error("log epoch {epoch}: bundle {index} cannot be used: {problem}")]
    Bundle {
        /// The epoch's number.
        epoch: u32,
        /// The bundle's index.
        index: u64,
        /// The problem.
        problem: String,
    },
    /// A leaf does not continue its account's previous leaf.
    #[error(
        "log epoch {epoch}: leaf {position} does not continue the previous leaf of account number {account}: a leaf is \
         lost, doubled or changed"
    )]
    Chain {
        /// The epoch's number.
        epoch: u32,
        /// The position of the leaf.
        position: u64,
        /// The log's number of the account.
        account: u32,
    },
    /// A hash does not match the level below it.
    #[error("log epoch {epoch}: {tile} does not match the level below it, or is missing")]
    Tile {
        /// The epoch's number.
        epoch: u32,
        /// The tile.
        tile: LogPath,
    },
    /// The root of the tree is not the stored one.
    #[error("log epoch {epoch}: its tiles do not hash to the root of its {size} leaves")]
    Root {
        /// The epoch's number.
        epoch: u32,
        /// How many leaves it has.
        size: u64,
    },
    /// The total funds of all accounts differ from the store's.
    #[error("log epoch {epoch}: the accounts' funds in the log are {logged} atoms, but {stored} in the store")]
    Funds {
        /// The epoch's number.
        epoch: u32,
        /// The sum in the log, in atoms.
        logged: i128,
        /// The sum of balances and open holds in the store, in atoms.
        stored: i128,
    },
}

/// Recomputes all epochs of a log. A log may grow in the meantime: new leaves are left out.
///
/// Of pruned bundles, only hashes remain. The funds are compared only if nothing was pruned and every committed posting
/// is in the log.
///
/// # Errors
/// When the store fails.
pub async fn verify_log(store: &dyn LogStore) -> Result<Vec<LogFault>, StoreError> {
    let mut faults = Vec::new();
    for epoch in store.log_epochs().await? {
        let mut check = Check::new(store, &epoch);
        check.leaves().await?;
        check.tiles_above().await?;
        check.root().await?;
        if epoch.ended_at.is_none() && epoch.minimum == 0 {
            check.funds().await?;
        }
        faults.append(&mut check.faults);
    }
    Ok(faults)
}

struct Check<'a> {
    store: &'a dyn LogStore,
    epoch: &'a LogEpoch,
    lookup: Lookup,
    heads: HashMap<u32, ChainHead>,
    /// The tiles that the root is computed from.
    edge: BTreeMap<Tile, Vec<TreeHash>>,
    /// The last read tile of each level.
    tiles: HashMap<u8, (Tile, Vec<TreeHash>)>,
    faults: Vec<LogFault>,
}

impl<'a> Check<'a> {
    fn new(store: &'a dyn LogStore, epoch: &'a LogEpoch) -> Self {
        let (lookup, heads, edge, tiles) = (Lookup::new(epoch), HashMap::new(), BTreeMap::new(), HashMap::new());
        Self { store, epoch, lookup, heads, edge, tiles, faults: Vec::new() }
    }

    fn fault(&mut self, fault: LogFault) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    fn bundle_fault(&mut self, index: u64, problem: impl ToString) {
        self.fault(LogFault::Bundle { epoch: self.epoch.number, index, problem: problem.to_string() });
    }

    /// All bundles, and the hashes of their tiles.
    async fn leaves(&mut self) -> Result<(), StoreError> {
        let (mut next, end) = (self.epoch.minimum, self.epoch.size.div_ceil(BUNDLE_LEAVES as u64));
        while next < end {
            let page = self.store.log_bundles(self.epoch.number, next, PAGE).await?;
            // Pruned since the epoch was read, or lost.
            let first = page.first().map_or(end, |stored| stored.index.min(end));
            for index in next..first.min(next + u64::from(PAGE)) {
                self.bundle_fault(index, "it is missing");
            }
            next = first;
            for stored in page {
                if stored.index != next || next == end {
                    break;
                }
                self.bundle(&stored).await?;
                next += 1;
            }
        }
        Ok(())
    }

    async fn bundle(&mut self, stored: &StoredBundle) -> Result<(), StoreError> {
        let index = stored.index;
        let bundle = match Bundle::unpack(&stored.leaves) {
            Ok(bundle) => bundle,
            Err(malformed) => {
                self.bundle_fault(index, malformed);
                return Ok(());
            }
        };
        let Some(tile) = Tile::in_tree(0, index, self.epoch.size) else { return Ok(()) };
        let Some(leaves) = bundle.leaves().get(..tile.width().into()) else {
            self.bundle_fault(index, format!("it has fewer leaves than {}", tile.width()));
            return Ok(());
        };
        for (position, leaf) in (index * BUNDLE_LEAVES as u64..).zip(leaves) {
            self.chain(position, leaf);
        }
        let opened = self.lookup.open(self.store, index, &leaves.iter().collect::<Vec<_>>()).await;
        let opened = match opened {
            Ok(opened) => opened,
            Err(LogReadError::Store(error)) => return Err(error),
            Err(LogReadError::Bundle { problem, .. }) => {
                self.bundle_fault(index, problem);
                return Ok(());
            }
            Err(other) => {
                self.bundle_fault(index, other);
                return Ok(());
            }
        };
        let hashes: Vec<TreeHash> = opened.iter().map(|leaf| TreeHash::leaf(&leaf.entry())).collect();
        if let Some(hash) = hash_of(&hashes) {
            let as_stored = stored.hash.is_none_or(|stored| stored == *hash.as_bytes());
            if !as_stored || self.above(tile).await? != Some(hash) {
                self.fault(LogFault::Tile { epoch: self.epoch.number, tile: LogPath::Tile(tile) });
            }
        }
        self.keep(tile, hashes);
        Ok(())
    }

    /// A leaf's number and funds continue those of the account's previous leaf.
    fn chain(&mut self, position: u64, leaf: &Leaf) {
        let Leaf::Posted { account, before, amount, .. } = leaf else { return };
        // Nothing is known about pruned leaves.
        let expected = self.heads.get(account).copied();
        let expected = expected.or_else(|| (self.epoch.minimum == 0).then(ChainHead::default));
        let after = before.after(*amount);
        let has_number = *account < self.epoch.accounts;
        if expected.is_some_and(|expected| expected != *before) || after.is_none() || !has_number {
            self.fault(LogFault::Chain { epoch: self.epoch.number, position, account: *account });
        }
        self.heads.insert(*account, after.unwrap_or_default());
    }

    /// The hashes in tiles of level 1 and above match the full tiles below.
    async fn tiles_above(&mut self) -> Result<(), StoreError> {
        for level in 1..8_u8 {
            let mut index = 0;
            while let Some(tile) = Tile::in_tree(level, index, self.epoch.size) {
                index += 1;
                let Some(hashes) = self.tile(tile).await? else {
                    self.fault(LogFault::Tile { epoch: self.epoch.number, tile: LogPath::Tile(tile) });
                    continue;
                };
                if let Some(hash) = hash_of(&hashes)
                    && self.above(tile).await? != Some(hash)
                {
                    self.fault(LogFault::Tile { epoch: self.epoch.number, tile: LogPath::Tile(tile) });
                }
                self.keep(tile, hashes);
            }
        }
        Ok(())
    }

    /// The hash of a full tile in the level above.
    async fn above(&mut self, tile: Tile) -> Result<Option<TreeHash>, StoreError> {
        let Some(above) = Tile::in_tree(tile.level() + 1, tile.index() / 256, self.epoch.size) else { return Ok(None) };
        if self.tiles.get(&above.level()).is_none_or(|(read, _)| *read != above) {
            let hashes = self.tile(above).await?.unwrap_or_default();
            self.tiles.insert(above.level(), (above, hashes));
        }
        let place = usize::try_from(tile.index() % 256).unwrap_or_default();
        Ok(self.tiles.get(&above.level()).and_then(|(_, hashes)| hashes.get(place).copied()))
    }

    /// A stored tile.
    async fn tile(&self, tile: Tile) -> Result<Option<Vec<TreeHash>>, StoreError> {
        let bytes = self.store.log_tile(self.epoch.number, tile.level(), tile.index()).await?;
        let bytes = bytes.as_deref().and_then(|bytes| bytes.get(..32 * usize::from(tile.width())));
        Ok(bytes.and_then(|bytes| read_tile(bytes, tile.width()).ok()))
    }

    /// Remembers the hashes of a tile if the root is computed from it.
    fn keep(&mut self, tile: Tile, hashes: Vec<TreeHash>) {
        let is_last = Tile::in_tree(tile.level(), tile.index() + 1, self.epoch.size).is_none();
        if is_last {
            self.edge.insert(tile, hashes);
        }
    }

    async fn root(&mut self) -> Result<(), StoreError> {
        let size = self.epoch.size;
        for tile in root_tiles(size) {
            if !self.edge.contains_key(&tile)
                && let Some(hashes) = self.tile(tile).await?
            {
                self.edge.insert(tile, hashes);
            }
        }
        let is_root = read_root(&self.edge, size).is_ok_and(|root| *root.as_bytes() == self.epoch.root);
        if !is_root {
            self.fault(LogFault::Root { epoch: self.epoch.number, size });
        }
        Ok(())
    }

    /// Compares the sum of all funds, unless a commit happens meanwhile.
    async fn funds(&mut self) -> Result<(), StoreError> {
        if !self.is_up_to_date().await? {
            return Ok(());
        }
        let logged: i128 = self.heads.values().map(|head| i128::from(head.funds.atoms())).sum();
        let (mut stored, mut after) = (0_i128, None);
        loop {
            let page = self.store.accounts(after.as_ref(), ACCOUNTS_PAGE).await?;
            for account in &page.items {
                let totals = &account.totals;
                stored += i128::from(totals.balance.atoms()) + i128::from(totals.held.atoms());
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        if stored != logged && self.is_up_to_date().await? {
            self.fault(LogFault::Funds { epoch: self.epoch.number, logged, stored });
        }
        Ok(())
    }

    /// Whether the log is unchanged since it was read and contains every committed posting.
    async fn is_up_to_date(&self) -> Result<bool, StoreError> {
        let epochs = self.store.log_epochs().await?;
        let Some(current) = epochs.iter().find(|epoch| epoch.number == self.epoch.number) else { return Ok(false) };
        if current.size != self.epoch.size || current.ended_at.is_some() {
            return Ok(false);
        }
        let unlogged = self.store.unlogged(current, 1).await?;
        Ok(unlogged.postings.is_empty() && unlogged.batches.is_empty() && unlogged.taken == current.taken)
    }
}

/// The hash of a full tile.
fn hash_of(hashes: &[TreeHash]) -> Option<TreeHash> {
    (hashes.len() == BUNDLE_LEAVES).then(|| read_root(&Leaves(hashes), BUNDLE_LEAVES as u64).ok())?
}
