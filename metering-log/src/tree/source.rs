//! Reading tiles: hashes of nodes and of ranges of leaves are computed from them.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use crate::tree::hash::TreeHash;
use crate::tree::path::LogPath;
use crate::tree::proof::split;
use crate::tree::tile::Tile;

/// Where the tiles of a tree come from: a database, a folder, or tiles fetched before.
pub trait TileSource {
    /// Why a tile could not be read.
    type Error;

    /// The hashes of a tile. Hashes beyond [`Tile::width`] are dropped: a full tile may be returned for a partial one.
    ///
    /// # Errors
    /// When the tile cannot be read.
    fn read(&self, tile: Tile) -> Result<Vec<TreeHash>, Self::Error>;
}

impl<S: TileSource + ?Sized> TileSource for &S {
    type Error = S::Error;

    fn read(&self, tile: Tile) -> Result<Vec<TreeHash>, S::Error> {
        (**self).read(tile)
    }
}

/// The tile is not in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is missing", LogPath::Tile(*.0))]
pub struct MissingTile(pub Tile);

/// Tiles in memory, for example fetched ones.
impl TileSource for BTreeMap<Tile, Vec<TreeHash>> {
    type Error = MissingTile;

    fn read(&self, tile: Tile) -> Result<Vec<TreeHash>, MissingTile> {
        self.get(&tile).or_else(|| self.get(&tile.full())).cloned().ok_or(MissingTile(tile))
    }
}

/// Why nothing could be computed from tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TileError<E> {
    /// The source could not read a tile.
    #[error("could not read {}: {error}", LogPath::Tile(*.tile))]
    Source {
        /// The tile.
        tile: Tile,
        /// What the source said.
        error: E,
    },
    /// The source has fewer hashes than the tile.
    #[error("{} has only {hashes} hashes", LogPath::Tile(*.tile))]
    Short {
        /// The tile.
        tile: Tile,
        /// How many hashes the source had.
        hashes: usize,
    },
    /// The position is not within the tree.
    #[error("the tree has {size} leaves; there is no proof for position {position}")]
    OutOfRange {
        /// The leaf, or the old size.
        position: u64,
        /// How many leaves the tree has.
        size: u64,
    },
}

/// Reads each tile of a tree at most once.
pub(crate) struct TileReader<S> {
    source: S,
    size: u64,
    read: BTreeMap<Tile, Vec<TreeHash>>,
}

impl<S: TileSource> TileReader<S> {
    pub(crate) fn new(source: S, size: u64) -> Self {
        Self { source, size, read: BTreeMap::new() }
    }

    /// The root over the leaves from `start` up to `end`, a range that RFC 6962 hashes together; it is not empty.
    pub(crate) fn range(&mut self, start: u64, end: u64) -> Result<TreeHash, TileError<S::Error>> {
        let leaves = end - start;
        if leaves.is_power_of_two() {
            return self.perfect(start, leaves.ilog2());
        }
        let middle = start + split(leaves);
        let left = self.range(start, middle)?;
        Ok(TreeHash::node(left, self.range(middle, end)?))
    }

    /// The root over `2^height` leaves from `start`, a multiple of that: from one tile.
    fn perfect(&mut self, start: u64, height: u32) -> Result<TreeHash, TileError<S::Error>> {
        let level = height / 8;
        let first = start >> (8 * level);
        // At most 128 hashes, starting at a multiple of their number, so all are in the same tile.
        let offset = usize::try_from(first % 256).unwrap_or_default();
        let hashes = 1_usize << (height % 8);
        let outside = TileError::OutOfRange { position: start, size: self.size };
        let tile = u8::try_from(level).ok().and_then(|level| Tile::in_tree(level, first / 256, self.size));
        let tile = self.tile(tile.ok_or(outside)?)?;
        Ok(TreeHash::over(&tile[offset..offset + hashes]))
    }

    /// The hashes of a tile: as many as its width.
    pub(crate) fn tile(&mut self, tile: Tile) -> Result<&[TreeHash], TileError<S::Error>> {
        if !self.read.contains_key(&tile) {
            let mut hashes = self.source.read(tile).map_err(|error| TileError::Source { tile, error })?;
            if hashes.len() < usize::from(tile.width()) {
                return Err(TileError::Short { tile, hashes: hashes.len() });
            }
            hashes.truncate(tile.width().into());
            self.read.insert(tile, hashes);
        }
        Ok(&self.read[&tile])
    }
}

/// The root of the tree of `size` leaves.
///
/// # Errors
/// When a tile cannot be read.
pub fn read_root<S: TileSource>(source: &S, size: u64) -> Result<TreeHash, TileError<S::Error>> {
    if size == 0 {
        return Ok(TreeHash::EMPTY_TREE);
    }
    TileReader::new(source, size).range(0, size)
}

/// The tiles that [`read_root`] reads.
#[must_use]
pub fn root_tiles(size: u64) -> BTreeSet<Tile> {
    tiles_read(|source| read_root(source, size).is_ok())
}

/// The tiles that a computation reads, if it can be done at all.
pub(crate) fn tiles_read(compute: impl FnOnce(&Recorder) -> bool) -> BTreeSet<Tile> {
    let recorder = Recorder::default();
    if compute(&recorder) { recorder.0.into_inner() } else { BTreeSet::new() }
}

/// Notes which tiles are read, and supplies hashes of the right number.
#[derive(Default)]
pub(crate) struct Recorder(std::cell::RefCell<BTreeSet<Tile>>);

impl TileSource for Recorder {
    type Error = Infallible;

    fn read(&self, tile: Tile) -> Result<Vec<TreeHash>, Infallible> {
        self.0.borrow_mut().insert(tile);
        Ok(vec![TreeHash::EMPTY_TREE; tile.width().into()])
    }
}
