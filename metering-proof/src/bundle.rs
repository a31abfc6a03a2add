//! Bundles: up to 256 leaves as a store keeps them. Together with the names that their numbers stand for, they
//! determine the log's entries.
//!
//! Numbers: a leaf has the log's number of its account (`log_account.number`) and of its usage line
//! (`log_line.number`), and [`Names`] resolves them. [`ChainHead::leaves`] is the number of a leaf among those of its
//! account, from 0. A leaf's position in the log is not stored: it is 256 times the index of the bundle, and its place
//! in [`Bundle::leaves`]. The bytes are in `packed`.

mod packed;

use std::collections::HashMap;

use metering_core::{Credits, Timestamp};

use crate::leaf::{Opening, PUBLIC_PREFIX, Posting, entry};
use crate::names::{Names, UnknownName};
use crate::salt::Salt;

/// How many leaves a full bundle has: as many as a tile has hashes.
pub const BUNDLE_LEAVES: usize = 256;
const COMMITMENT_BYTES: usize = 32;

/// Leaves of the log, in order, at most [`BUNDLE_LEAVES`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bundle {
    leaves: Vec<Leaf>,
    heads: HashMap<u32, ChainHead>,
}

/// A leaf in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// A public entry, which anyone may read.
    Public {
        /// When it was committed.
        at: Timestamp,
        /// The entry.
        text: String,
    },
    /// A leaf of an account.
    Posted {
        /// The log's number of the account.
        account: u32,
        /// The account's leaf count and funds before it.
        before: ChainHead,
        /// When it was committed.
        at: Timestamp,
        /// The change of the funds.
        amount: Credits,
        /// Its subject, with the log's number of its usage line.
        posting: Posting<u32>,
    },
}

/// The end of an account's leaf chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChainHead {
    /// The number of leaves, which is also the next leaf's number.
    pub leaves: u64,
    /// The funds after the last one.
    pub funds: Credits,
}

impl ChainHead {
    /// The end after another leaf; `None` when the funds would be out of range.
    #[must_use]
    pub fn after(self, amount: Credits) -> Option<Self> {
        Some(Self { leaves: self.leaves.checked_add(1)?, funds: self.funds.checked_add(amount)? })
    }
}

/// Why a leaf does not fit into a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeafFault {
    /// The bundle is already full.
    #[error("the bundle is full")]
    Full,
    /// Its number or funds do not continue the account's previous leaf.
    #[error("a leaf does not continue its account's previous leaf")]
    Gap,
    /// The account's funds would overflow.
    #[error("the funds of an account are out of range")]
    OutOfRange,
    /// Public entries begin with [`PUBLIC_PREFIX`], and none is as long as a commitment.
    #[error("a public entry could be mistaken for something else")]
    Ambiguous,
}

/// The bytes are not a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a bundle of leaves: {0}")]
pub struct MalformedBundle(pub(crate) String);

/// A leaf with everything that its commitment covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedLeaf {
    /// A public entry, which anyone may read.
    Public(String),
    /// A leaf of an account.
    Posted {
        /// What it says.
        opening: Opening,
        /// Its salt.
        salt: Salt,
    },
}

impl OpenedLeaf {
    /// Its entry in the log.
    #[must_use]
    pub fn entry(&self) -> Vec<u8> {
        match self {
            Self::Public(text) => text.as_bytes().to_vec(),
            Self::Posted { opening, salt } => entry(salt, &opening.to_bytes()).to_vec(),
        }
    }
}

impl Bundle {
    /// Appends a leaf.
    ///
    /// # Errors
    /// When it does not fit; the bundle is unchanged then.
    pub fn push(&mut self, leaf: Leaf) -> Result<(), LeafFault> {
        if self.is_full() {
            return Err(LeafFault::Full);
        }
        match &leaf {
            Leaf::Public { text, .. } => {
                if !text.starts_with(PUBLIC_PREFIX) || text.len() == COMMITMENT_BYTES {
                    return Err(LeafFault::Ambiguous);
                }
            }
            Leaf::Posted { account, before, amount, .. } => {
                if self.heads.get(account).is_some_and(|head| head != before) {
                    return Err(LeafFault::Gap);
                }
                self.heads.insert(*account, before.after(*amount).ok_or(LeafFault::OutOfRange)?);
            }
        }
        self.leaves.push(leaf);
        Ok(())
    }

    /// Whether it has [`BUNDLE_LEAVES`].
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.leaves.len() == BUNDLE_LEAVES
    }

    /// Its leaves, in the order of the log.
    #[must_use]
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The ends of its accounts' leaf chains after this bundle, by log number.
    #[must_use]
    pub fn heads(&self) -> &HashMap<u32, ChainHead> {
        &self.heads
    }

    /// The bundle with only the first of its leaves, as it was when the log had that size.
    ///
    /// # Errors
    /// None for leaves that were in a bundle.
    pub fn first(&self, leaves: usize) -> Result<Self, LeafFault> {
        let mut first = Self::default();
        self.leaves.iter().take(leaves).try_for_each(|leaf| first.push(leaf.clone()))?;
        Ok(first)
    }

    /// Its leaves with everything that their commitments cover.
    ///
    /// # Errors
    /// When an account or a line is not in `names`.
    pub fn open(&self, names: &Names) -> Result<Vec<OpenedLeaf>, UnknownName> {
        self.leaves.iter().map(|leaf| leaf.open(names)).collect()
    }
}

impl Leaf {
    /// When it was committed.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Public { at, .. } | Self::Posted { at, .. } => *at,
        }
    }

    /// The leaf with everything that its commitment covers.
    ///
    /// # Errors
    /// When its account or its line is not in `names`.
    pub fn open(&self, names: &Names) -> Result<OpenedLeaf, UnknownName> {
        let (account, before, at, amount, posting) = match self {
            Self::Public { text, .. } => return Ok(OpenedLeaf::Public(text.clone())),
            Self::Posted { account, before, at, amount, posting } => (account, before, at, amount, posting),
        };
        let (id, salts) = names.account(*account)?;
        let opening = Opening {
            account: id.clone(),
            number: before.leaves,
            at: *at,
            amount: *amount,
            // Bundles never contain leaves that would overflow.
            funds: before.after(*amount).unwrap_or_default().funds,
            posting: posting.with_line(|line| names.line(*line).cloned())?,
        };
        Ok(OpenedLeaf::Posted { opening, salt: salts.salt(before.leaves) })
    }
}
