//! Inclusion proofs: that an entry is in a tree (RFC 6962, section 2.1.1).

use std::collections::BTreeSet;

use crate::tree::hash::TreeHash;
use crate::tree::proof::{ProofError, split};
use crate::tree::source::{TileError, TileReader, TileSource, tiles_read};
use crate::tree::tile::Tile;

/// The proof that leaf `index` is in the tree of `size` leaves: the hashes next to its path, from the leaf to the root.
///
/// # Errors
/// When the tree has no such leaf, or a tile cannot be read.
pub fn inclusion_proof<S: TileSource>(source: &S, index: u64, size: u64) -> Result<Vec<TreeHash>, TileError<S::Error>> {
    if index >= size {
        return Err(TileError::OutOfRange { position: index, size });
    }
    let mut tiles = TileReader::new(source, size);
    let (mut start, mut end) = (0, size);
    let mut proof = Vec::new();
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            proof.push(tiles.range(middle, end)?);
            end = middle;
        } else {
            proof.push(tiles.range(start, middle)?);
            start = middle;
        }
    }
    proof.reverse();
    Ok(proof)
}

/// The tiles that [`inclusion_proof`] reads; none if the tree has no such leaf.
#[must_use]
pub fn inclusion_tiles(index: u64, size: u64) -> BTreeSet<Tile> {
    tiles_read(|source| inclusion_proof(source, index, size).is_ok())
}

/// The root to which a proof leads from a leaf (RFC 9162, section 2.1.3.2).
///
/// # Errors
/// When the tree has no such leaf, or the proof has the wrong length.
pub fn root_from_inclusion(leaf: TreeHash, index: u64, size: u64, proof: &[TreeHash]) -> Result<TreeHash, ProofError> {
    if index >= size {
        return Err(ProofError::OutOfRange);
    }
    let (mut node, mut last) = (index, size - 1);
    let mut root = leaf;
    for sibling in proof {
        if last == 0 {
            return Err(ProofError::WrongLength);
        }
        if node % 2 == 1 || node == last {
            root = TreeHash::node(*sibling, root);
            // The last node of a level without a sibling is its own parent.
            while node % 2 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            root = TreeHash::node(root, *sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    if last == 0 { Ok(root) } else { Err(ProofError::WrongLength) }
}

/// Checks that leaf `index` of the tree of `size` leaves with this root is `leaf`.
///
/// # Errors
/// When the proof does not prove it.
pub fn verify_inclusion(
    leaf: TreeHash,
    index: u64,
    size: u64,
    proof: &[TreeHash],
    root: TreeHash,
) -> Result<(), ProofError> {
    if root_from_inclusion(leaf, index, size, proof)? == root { Ok(()) } else { Err(ProofError::RootMismatch) }
}
