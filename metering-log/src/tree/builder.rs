//! Grows a tree: takes leaves, and returns full tiles. It holds only the right edge: at most 255 hashes per level.

use std::collections::BTreeSet;

use crate::tree::hash::TreeHash;
use crate::tree::source::{TileError, TileReader, TileSource, tiles_read};
use crate::tree::tile::Tile;

/// A tree that grows. It can be resumed from the partial tiles of its last size.
#[derive(Clone, Debug, Default)]
pub struct TreeBuilder {
    size: u64,
    /// The partial tile of each level, possibly empty.
    edge: Vec<Vec<TreeHash>>,
}

/// The tiles that [`TreeBuilder::resume`] reads.
#[must_use]
pub fn resume_tiles(size: u64) -> BTreeSet<Tile> {
    tiles_read(|source| TreeBuilder::resume(source, size).is_ok())
}

/// A tile to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltTile {
    /// Which tile it is.
    pub tile: Tile,
    /// Its hashes: as many as its width.
    pub hashes: Vec<TreeHash>,
}

impl TreeBuilder {
    /// A tree without leaves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues a tree of `size` leaves; reads its partial tiles.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn resume<S: TileSource>(source: &S, size: u64) -> Result<Self, TileError<S::Error>> {
        let mut tiles = TileReader::new(source, size);
        let mut edge = Vec::new();
        for level in 0..8_u8 {
            let hashes = size >> (8 * u32::from(level));
            if hashes == 0 {
                break;
            }
            // Empty when all tiles of the level are full.
            let partial = Tile::in_tree(level, hashes / 256, size);
            edge.push(partial.map_or(Ok(Vec::new()), |tile| tiles.tile(tile).map(<[_]>::to_vec))?);
        }
        Ok(Self { size, edge })
    }

    /// How many leaves the tree has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf. Returns the tiles that it filled, lowest level first: usually none.
    #[must_use = "full tiles must be kept: proofs are made from them"]
    pub fn append(&mut self, leaf: TreeHash) -> Vec<BuiltTile> {
        self.size += 1;
        let mut full = Vec::new();
        let mut hash = leaf;
        for level in 0..8_u8 {
            if self.edge.len() == usize::from(level) {
                self.edge.push(Vec::new());
            }
            let partial = &mut self.edge[usize::from(level)];
            partial.push(hash);
            let index = (self.size >> (8 * u32::from(level))).saturating_sub(1) / 256;
            match Tile::new(level, index, 256) {
                Some(tile) if partial.len() == 256 => {
                    let hashes = std::mem::take(partial);
                    hash = TreeHash::over(&hashes);
                    full.push(BuiltTile { tile, hashes });
                }
                _ => break,
            }
        }
        full
    }

    /// The partial tiles at this size. With the full ones, they are all the tiles that a checkpoint of this size needs.
    pub fn partial_tiles(&self) -> impl Iterator<Item = BuiltTile> + '_ {
        (0..8_u8).zip(&self.edge).filter_map(|(level, hashes)| {
            let index = (self.size >> (8 * u32::from(level))) / 256;
            let width = u16::try_from(hashes.len()).ok()?;
            Tile::new(level, index, width).map(|tile| BuiltTile { tile, hashes: hashes.clone() })
        })
    }

    /// The root at this size.
    #[must_use]
    pub fn root(&self) -> TreeHash {
        let mut root = None;
        for hashes in &self.edge {
            let mut rest = hashes.as_slice();
            // Perfect subtrees, from the last and smallest to the first and largest.
            while !rest.is_empty() {
                let (before, subtree) = rest.split_at(rest.len() - (1 << rest.len().trailing_zeros()));
                let hash = TreeHash::over(subtree);
                root = Some(root.map_or(hash, |right| TreeHash::node(hash, right)));
                rest = before;
            }
        }
        root.unwrap_or(TreeHash::EMPTY_TREE)
    }
}
