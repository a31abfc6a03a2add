//! A small tree held entirely in memory, such as the tree over one batch of receipts.

use crate::tree::hash::TreeHash;
use crate::tree::source::{MissingTile, TileSource};
use crate::tree::tile::Tile;

/// The hashes of all leaves of a tree, as a source of its tiles.
#[derive(Clone, Copy, Debug)]
pub struct Leaves<'a>(pub &'a [TreeHash]);

impl TileSource for Leaves<'_> {
    type Error = MissingTile;

    fn read(&self, tile: Tile) -> Result<Vec<TreeHash>, MissingTile> {
        let leaves = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
        if !tile.is_in(leaves) {
            return Err(MissingTile(tile));
        }
        // No larger than the number of leaves, as the tile is in the tree.
        let below = 1_usize << (8 * u32::from(tile.level()));
        let start = usize::try_from(tile.index()).unwrap_or(usize::MAX).saturating_mul(256).saturating_mul(below);
        Ok(self.0[start..].chunks_exact(below).take(tile.width().into()).map(TreeHash::over).collect())
    }
}
