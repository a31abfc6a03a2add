//! Reads a log from its store: tiles, entries, proofs and the leaves of an account.
//!
//! Tiles of level 0 and bundles of entries are made from the stored leaves, and the tiles above are stored.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use metering_core::store::{LogEpoch, LogStore};
use metering_log::tree::{
    LogPath, Tile, TreeHash, consistency_proof, consistency_tiles, inclusion_proof, inclusion_tiles, push_entry,
    read_tile,
};
use tokio::sync::Mutex;

use crate::bundle::{Bundle, Leaf, OpenedLeaf};
use crate::leaf::Opening;
use crate::lookup::{LogReadError, Lookup, read_bundle};
use crate::salt::Salt;

/// How many bundles to read at once.
const PAGE: u32 = 64;

/// Reads the log of a store. It remembers names of the epoch that it read last.
#[derive(Debug)]
pub struct LogReader {
    store: Arc<dyn LogStore>,
    lookup: Mutex<Option<Lookup>>,
}

/// A leaf of an account, and its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountLeaf {
    /// Its position among all leaves of the epoch, from 0.
    pub position: u64,
    /// What it says.
    pub opening: Opening,
    /// Its salt.
    pub salt: Salt,
}

impl LogReader {
    /// A reader of a store's log.
    #[must_use]
    pub fn new(store: Arc<dyn LogStore>) -> Self {
        Self { store, lookup: Mutex::new(None) }
    }

    /// The hashes of a tile; `None` if the log does not have all of them, or they are pruned.
    ///
    /// # Errors
    /// When the store fails, or its data is damaged.
    pub async fn tile(&self, epoch: &LogEpoch, tile: Tile) -> Result<Option<Vec<TreeHash>>, LogReadError> {
        if tile.level() == 0 {
            let entries = self.opened(epoch, tile).await?;
            return Ok(entries.map(|entries| entries.iter().map(|leaf| TreeHash::leaf(&leaf.entry())).collect()));
        }
        let Some(bytes) = self.store.log_tile(epoch.number, tile.level(), tile.index()).await? else {
            return Ok(None);
        };
        let Some(bytes) = bytes.get(..32 * usize::from(tile.width())) else { return Ok(None) };
        let damaged = |_| LogReadError::Tile { epoch: epoch.number, tile: LogPath::Tile(tile) };
        read_tile(bytes, tile.width()).map(Some).map_err(damaged)
    }

    /// The entries of a tile of level 0, as `tlog-tiles` bundles them; `None` if the log does not have all of them, or they
    /// are pruned.
    ///
    /// # Errors
    /// When the store fails, or its data is damaged.
    pub async fn entries(&self, epoch: &LogEpoch, tile: Tile) -> Result<Option<Vec<u8>>, LogReadError> {
        let Some(leaves) = self.opened(epoch, tile).await? else { return Ok(None) };
        let mut bundle = Vec::with_capacity(leaves.len() * 34);
        for leaf in leaves {
            let pushed = push_entry(&mut bundle, &leaf.entry());
            pushed.map_err(|problem| LogReadError::bundle(epoch.number, tile.index(), problem))?;
        }
        Ok(Some(bundle))
    }

    /// The proof that the leaf at a position is in the tree of `size` leaves.
    ///
    /// # Errors
    /// When the log has no such leaf or size, or cannot be read.
    pub async fn prove(&self, epoch: &LogEpoch, position: u64, size: u64) -> Result<Vec<TreeHash>, LogReadError> {
        let proofs = self.prove_all(epoch, &[position], size).await?;
        Ok(proofs.into_iter().flatten().collect())
    }

    /// The proofs of several leaves, in their order. Reads each tile once.
    ///
    /// # Errors
    /// As [`LogReader::prove`].
    pub async fn prove_all(
        &self,
        epoch: &LogEpoch,
        positions: &[u64],
        size: u64,
    ) -> Result<Vec<Vec<TreeHash>>, LogReadError> {
        let wanted = positions.iter().flat_map(|position| inclusion_tiles(*position, size)).collect();
        let tiles = self.tiles(epoch, wanted).await?;
        let proofs = positions.iter().map(|position| inclusion_proof(&tiles, *position, size));
        Ok(proofs.collect::<Result<_, _>>()?)
    }

    /// The proof that the tree of `old` leaves is the beginning of the tree of `new`.
    ///
    /// # Errors
    /// When the log is smaller than that, or cannot be read.
    pub async fn prove_consistency(&self, epoch: &LogEpoch, old: u64, new: u64) -> Result<Vec<TreeHash>, LogReadError> {
        let tiles = self.tiles(epoch, consistency_tiles(old, new)).await?;
        Ok(consistency_proof(&tiles, old, new)?)
    }

    /// At most `limit` leaves of an account in some bundles, such as those of [`LogStore::bundles_of`], from its leaf with
    /// the number `first` on.
    ///
    /// # Errors
    /// When the store fails, or its data is damaged.
    pub async fn account_leaves(
        &self,
        epoch: &LogEpoch,
        account: u32,
        bundles: Range<u64>,
        first: u64,
        limit: usize,
    ) -> Result<Vec<AccountLeaf>, LogReadError> {
        let mut found = Vec::new();
        let mut next = bundles.start;
        while next < bundles.end && found.len() < limit {
            let page = self.store.log_bundles(epoch.number, next, PAGE).await?;
            let Some(last) = page.last() else { break };
            next = last.index + 1;
            for stored in page.iter().filter(|stored| stored.index < bundles.end) {
                let bundle = Bundle::unpack(&stored.leaves);
                let bundle = bundle.map_err(|problem| LogReadError::bundle(epoch.number, stored.index, problem))?;
                let start = stored.index * 256;
                let own = (start..).zip(bundle.leaves()).filter(|(position, leaf)| {
                    let is_own = matches!(leaf, Leaf::Posted { account: of, before, .. }
                        if *of == account && before.leaves >= first);
                    is_own && *position < epoch.size
                });
                let (positions, leaves): (Vec<u64>, Vec<&Leaf>) = own.take(limit - found.len()).unzip();
                if leaves.is_empty() {
                    continue;
                }
                let opened = self.open(epoch, stored.index, &leaves).await?;
                found.extend(positions.into_iter().zip(opened).filter_map(|(position, leaf)| match leaf {
                    OpenedLeaf::Posted { opening, salt } => Some(AccountLeaf { position, opening, salt }),
                    OpenedLeaf::Public(_) => None,
                }));
            }
        }
        Ok(found)
    }

    /// The tiles among these that the log has.
    pub(crate) async fn tiles(
        &self,
        epoch: &LogEpoch,
        wanted: BTreeSet<Tile>,
    ) -> Result<BTreeMap<Tile, Vec<TreeHash>>, LogReadError> {
        let mut tiles = BTreeMap::new();
        for tile in wanted {
            if let Some(hashes) = self.tile(epoch, tile).await? {
                tiles.insert(tile, hashes);
            }
        }
        Ok(tiles)
    }

    /// As many leaves of a bundle as its tile is wide.
    async fn opened(&self, epoch: &LogEpoch, tile: Tile) -> Result<Option<Vec<OpenedLeaf>>, LogReadError> {
        let Some(bundle) = read_bundle(&*self.store, epoch.number, tile.index()).await? else { return Ok(None) };
        let Some(leaves) = bundle.leaves().get(..tile.width().into()) else { return Ok(None) };
        self.open(epoch, tile.index(), &leaves.iter().collect::<Vec<_>>()).await.map(Some)
    }

    async fn open(&self, epoch: &LogEpoch, index: u64, leaves: &[&Leaf]) -> Result<Vec<OpenedLeaf>, LogReadError> {
        let mut lookup = self.lookup.lock().await;
        if lookup.as_ref().is_some_and(|lookup| lookup.epoch() != epoch.number) {
            *lookup = None;
        }
        lookup.get_or_insert_with(|| Lookup::new(epoch)).open(&*self.store, index, leaves).await
    }
}
