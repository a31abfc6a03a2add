//! Reading bundles from a store, and looking up the names of their numbers there.

use metering_core::StoreError;
use metering_core::store::{LogEpoch, LogStore};
use metering_log::tree::{LogPath, MissingTile, TileError};

use crate::bundle::{Bundle, Leaf, OpenedLeaf};
use crate::leaf::Posting;
use crate::names::Names;

/// Why a log cannot be read from its store.
#[derive(Debug, thiserror::Error)]
pub enum LogReadError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A bundle is damaged, or contains an unknown number.
    #[error("bundle {index} of log epoch {epoch} is damaged: {problem}; run `metering admin verify`")]
    Bundle {
        /// The epoch's number.
        epoch: u32,
        /// The bundle's index.
        index: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A tile is damaged.
    #[error("{tile} of log epoch {epoch} is damaged; run `metering admin verify`")]
    Tile {
        /// The epoch's number.
        epoch: u32,
        /// The tile.
        tile: LogPath,
    },
    /// A proof was requested for leaves that the log does not have, or needs a pruned bundle.
    #[error("no proof from the log: {0}")]
    Proof(#[from] TileError<MissingTile>),
}

impl LogReadError {
    pub(crate) fn bundle(epoch: u32, index: u64, problem: impl ToString) -> Self {
        Self::Bundle { epoch, index, problem: problem.to_string() }
    }
}

/// Names that are looked up in a store as bundles need them.
#[derive(Debug)]
pub(crate) struct Lookup(Names);

impl Lookup {
    pub(crate) fn new(epoch: &LogEpoch) -> Self {
        Self(Names::new(epoch))
    }

    /// The epoch's number.
    pub(crate) fn epoch(&self) -> u32 {
        self.0.epoch()
    }

    /// The leaves of a bundle with everything that their commitments cover, of one account or of all.
    pub(crate) async fn open(
        &mut self,
        store: &dyn LogStore,
        index: u64,
        leaves: &[&Leaf],
    ) -> Result<Vec<OpenedLeaf>, LogReadError> {
        self.0.trim();
        let (mut accounts, mut has_lines) = (Vec::new(), true);
        for leaf in leaves {
            let Leaf::Posted { account, posting, .. } = leaf else { continue };
            if self.0.account(*account).is_err() {
                accounts.push(*account);
            }
            if let Posting::Usage { line, .. } = posting {
                has_lines &= self.0.line(*line).is_ok();
            }
        }
        accounts.sort_unstable();
        accounts.dedup();
        if !accounts.is_empty() {
            for account in store.numbered_accounts(self.epoch(), &accounts).await? {
                if let Some(number) = account.number {
                    self.0.add_account(number, &account.id);
                }
            }
        }
        if !has_lines {
            for (number, line) in store.logged_lines().await? {
                self.0.add_line(number, line);
            }
        }
        let opened = leaves.iter().map(|leaf| leaf.open(&self.0)).collect::<Result<Vec<_>, _>>();
        opened.map_err(|unknown| LogReadError::bundle(self.epoch(), index, unknown))
    }
}

/// A bundle as it is stored: it may have more leaves than an earlier size of the log had. `None` if it is pruned.
pub(crate) async fn read_bundle(store: &dyn LogStore, epoch: u32, index: u64) -> Result<Option<Bundle>, LogReadError> {
    let stored = store.log_bundles(epoch, index, 1).await?;
    let Some(stored) = stored.into_iter().find(|stored| stored.index == index) else { return Ok(None) };
    Bundle::unpack(&stored.leaves).map(Some).map_err(|problem| LogReadError::bundle(epoch, index, problem))
}
