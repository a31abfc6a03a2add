//! The audit itself: the rehashed entries of a log must lead from the old checkpoint to the new one.

use std::collections::BTreeMap;

use metering_log::checkpoint::Checkpoint;
use metering_log::tree::{BuiltTile, LogPath, Tile, TreeBuilder, resume_tiles};

use crate::failure::Failure;
use crate::log::remote::RemoteLog;

/// Checks every entry and every tile that the log has since `old`; from its beginning if there is none.
///
/// # Errors
/// [`Failure::Discrepancies`] when the log changed or dropped entries, or serves inconsistent data.
pub(crate) async fn audit(log: &RemoteLog, old: Option<&Checkpoint>, new: &Checkpoint) -> Result<(), Failure> {
    let old_size = old.map_or(0, Checkpoint::size);
    if new.size() < old_size {
        return Err(Failure::Discrepancies(format!(
            "the log was rolled back: it had {old_size} entries when it was last seen, and has {} now",
            new.size()
        )));
    }
    let mut tree = resume(log, old_size, new.size()).await?;
    if old.is_some_and(|old| tree.root() != old.root()) {
        return Err(Failure::Discrepancies(format!(
            "the log was forked or rewritten: its first {old_size} entries are not those that it had when it was last seen"
        )));
    }
    let bundles = if old_size < new.size() { old_size / 256..new.size().div_ceil(256) } else { 0..0 };
    for tile in bundles.filter_map(|index| Tile::in_tree(0, index, new.size())) {
        let (entries, listed) = (log.entries(tile).await?, log.tile(tile).await?);
        for (index, (entry, listed)) in (tile.index() * 256..).zip(entries.into_iter().zip(listed)) {
            if entry != listed {
                return Err(Failure::Discrepancies(format!(
                    "entry {index} was changed: its hash is {entry}, and the log lists {listed}"
                )));
            }
            // The hashes that the tree already has.
            if index < old_size {
                continue;
            }
            for built in tree.append(entry) {
                check_tile(log, &built).await?;
            }
        }
    }
    if tree.root() != new.root() {
        return Err(Failure::Discrepancies(format!(
            "the log was forked or rewritten: its {} entries do not hash to the root of its checkpoint",
            new.size()
        )));
    }
    for built in tree.partial_tiles() {
        check_tile(log, &built).await?;
    }
    Ok(())
}

/// The tree of the old size, from tiles that the log serves now.
async fn resume(log: &RemoteLog, old: u64, new: u64) -> Result<TreeBuilder, Failure> {
    let mut tiles = BTreeMap::new();
    for tile in resume_tiles(old) {
        // The tile may have grown since, and the old partial one may no longer be served.
        let wider = Tile::in_tree(tile.level(), tile.index(), new).unwrap_or(tile);
        tiles.insert(tile, log.tile(wider).await?);
    }
    TreeBuilder::resume(&tiles, old).map_err(|error| Failure::Discrepancies(error.to_string()))
}

/// Checks a tile that the log serves. Tiles of level 0 were already compared hash by hash.
async fn check_tile(log: &RemoteLog, built: &BuiltTile) -> Result<(), Failure> {
    if built.tile.level() == 0 || log.tile(built.tile).await? == built.hashes {
        return Ok(());
    }
    let path = LogPath::Tile(built.tile);
    Err(Failure::Discrepancies(format!("{path} does not have the hashes of the tiles below it")))
}
