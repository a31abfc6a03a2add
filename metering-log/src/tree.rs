//! Merkle trees (RFC 6962, section 2.1) in tiles (C2SP `tlog-tiles`): hashes, growth, and proofs.
//!
//! A tree's state is its tiles. [`TreeBuilder`] makes them, leaf by leaf; proofs are computed from a [`TileSource`].

mod builder;
mod bundle;
mod consistency;
mod hash;
mod inclusion;
mod leaves;
mod path;
mod proof;
mod source;
mod tile;

pub use builder::{BuiltTile, TreeBuilder, resume_tiles};
pub use bundle::{EntryTooLong, MAX_ENTRY_BYTES, MalformedBundle, push_entry, read_entries};
pub use consistency::{consistency_proof, consistency_tiles, verify_consistency};
pub use hash::{MalformedHash, TreeHash};
pub use inclusion::{inclusion_proof, inclusion_tiles, root_from_inclusion, verify_inclusion};
pub use leaves::Leaves;
pub use path::{LogPath, MalformedPath};
pub use proof::ProofError;
pub use source::{MissingTile, TileError, TileSource, read_root, root_tiles};
pub use tile::{MalformedTile, TILE_WIDTH, Tile, read_tile, tile_bytes};
