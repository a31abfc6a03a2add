//! The name of a tile: its level, its index in the level, and how many hashes it has.

use crate::tree::hash::TreeHash;

/// Hashes in a full tile, and entries in a full bundle.
pub const TILE_WIDTH: u16 = 256;

/// A tile: a run of up to [`TILE_WIDTH`] hashes of one level, or the bundle of the entries below it.
///
/// Level 0 has the hashes of leaves; each hash of a level above is the root of a full tile of the level below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    level: u8,
    index: u64,
    width: u16,
}

impl Tile {
    /// A tile; `None` if the level is over 63, or the width not between 1 and [`TILE_WIDTH`].
    #[must_use]
    pub fn new(level: u8, index: u64, width: u16) -> Option<Self> {
        (level < 64 && (1..=TILE_WIDTH).contains(&width)).then_some(Self { level, index, width })
    }

    /// The tile at this place in a tree of `size` leaves: full, or partial if the tree ends in it. `None` if it is
    /// empty.
    #[must_use]
    pub fn in_tree(level: u8, index: u64, size: u64) -> Option<Self> {
        let start = u128::from(index) * u128::from(TILE_WIDTH);
        let hashes = u128::from(hashes_in(level, size)).saturating_sub(start).min(TILE_WIDTH.into());
        Self::new(level, index, u16::try_from(hashes).ok()?)
    }

    /// The tiles that a log of `new` leaves has and one of `old` did not: those to write before the checkpoint of `new`.
    pub fn added(old: u64, new: u64) -> impl Iterator<Item = Self> {
        (0..8_u8).flat_map(move |level| {
            let (before, after) = (hashes_in(level, old), hashes_in(level, new));
            let indexes = if before < after { before / 256..after.div_ceil(256) } else { 0..0 };
            indexes.filter_map(move |index| Self::in_tree(level, index, new))
        })
    }

    /// Its level: 0 for the hashes of leaves.
    #[must_use]
    pub fn level(self) -> u8 {
        self.level
    }

    /// Its index within the level.
    #[must_use]
    pub fn index(self) -> u64 {
        self.index
    }

    /// How many hashes (or entries) it has.
    #[must_use]
    pub fn width(self) -> u16 {
        self.width
    }

    /// Whether it has [`TILE_WIDTH`] hashes: then it never changes, and is deleted only if the log is pruned.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.width == TILE_WIDTH
    }

    /// The full tile at the same place, which a log may serve instead of a partial one.
    #[must_use]
    pub fn full(self) -> Self {
        Self { width: TILE_WIDTH, ..self }
    }

    /// Whether a tree of `size` leaves has all hashes of this tile. No other tile may be requested or served.
    #[must_use]
    pub fn is_in(self, size: u64) -> bool {
        let end = u128::from(self.index) * u128::from(TILE_WIDTH) + u128::from(self.width);
        end <= u128::from(hashes_in(self.level, size))
    }
}

/// How many hashes a level has in a tree of `size` leaves.
fn hashes_in(level: u8, size: u64) -> u64 {
    size.checked_shr(8 * u32::from(level)).unwrap_or(0)
}

/// The bytes of a tile: its hashes, one after another.
#[must_use]
pub fn tile_bytes(hashes: &[TreeHash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

/// The bytes are not a tile of this width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tile of {width} hashes has {bytes} bytes; expected {}", u32::from(*.width) * 32)]
pub struct MalformedTile {
    /// How many hashes were expected.
    pub width: u16,
    /// How many bytes there were.
    pub bytes: usize,
}

/// Reads the hashes of a tile of `width` hashes.
///
/// # Errors
/// When there are more or fewer bytes.
pub fn read_tile(bytes: &[u8], width: u16) -> Result<Vec<TreeHash>, MalformedTile> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    if !rest.is_empty() || hashes.len() != usize::from(width) {
        return Err(MalformedTile { width, bytes: bytes.len() });
    }
    Ok(hashes.iter().copied().map(TreeHash::from_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile(level: u8, index: u64, width: u16) -> Tile {
        Tile::new(level, index, width).unwrap()
    }

    /// The example of `tlog-tiles`, "Partial Tiles".
    #[test]
    fn tree_of_70000_has_the_tiles_of_the_text() {
        let tiles: Vec<_> = Tile::added(0, 70_000).collect();
        let of = |level| tiles.iter().copied().filter(move |tile| tile.level() == level);
        assert_eq!(of(0).filter(|tile| tile.is_full()).count(), 273);
        assert_eq!(of(0).next_back(), Some(tile(0, 273, 112)));
        assert_eq!(of(1).collect::<Vec<_>>(), [tile(1, 0, 256), tile(1, 1, 17)]);
        assert_eq!(of(2).collect::<Vec<_>>(), [tile(2, 0, 1)]);
        assert_eq!(tiles.len(), 274 + 2 + 1);
        assert_eq!(Tile::added(0, 256).collect::<Vec<_>>(), [tile(0, 0, 256), tile(1, 0, 1)]);
    }

    #[test]
    fn growth_adds_the_tiles_that_changed() {
        assert_eq!(Tile::added(7, 7).count(), 0);
        assert_eq!(Tile::added(0, 0).count(), 0);
        assert_eq!(Tile::added(9, 7).count(), 0);
        assert_eq!(Tile::added(255, 257).collect::<Vec<_>>(), [tile(0, 0, 256), tile(0, 1, 1), tile(1, 0, 1)]);
        assert_eq!(Tile::added(256, 257).collect::<Vec<_>>(), [tile(0, 1, 1)]);
    }

    #[test]
    fn trees_have_the_tiles_up_to_their_size() {
        assert!(tile(0, 0, 5).is_in(5) && tile(0, 0, 5).is_in(300));
        assert!(!tile(0, 0, 6).is_in(5));
        assert!(tile(1, 0, 1).is_in(256) && !tile(1, 0, 1).is_in(255));
        assert!(tile(7, 0, 255).is_in(u64::MAX) && !tile(7, 0, 256).is_in(u64::MAX));
        assert!(!tile(8, 0, 1).is_in(u64::MAX) && !tile(63, 0, 1).is_in(u64::MAX));
        assert!(!tile(0, u64::MAX, 256).is_in(u64::MAX));
        assert_eq!(Tile::in_tree(0, 1, 256), None);
        assert_eq!(Tile::in_tree(0, u64::MAX, u64::MAX), None);
        assert_eq!(Tile::in_tree(0, u64::MAX / 256, u64::MAX), Some(tile(0, u64::MAX / 256, 255)));
    }

    #[test]
    fn tiles_round_trip_as_bytes() {
        let hashes = [TreeHash::leaf(b"a"), TreeHash::leaf(b"b")];
        let bytes = tile_bytes(&hashes);
        assert_eq!(read_tile(&bytes, 2), Ok(hashes.to_vec()));
        assert_eq!(read_tile(&bytes, 1), Err(MalformedTile { width: 1, bytes: 64 }));
        assert!(read_tile(&bytes[..63], 2).is_err());
        assert_eq!(read_tile(&[], 1).unwrap_err().to_string(), "a tile of 1 hashes has 0 bytes; expected 32");
    }
}
