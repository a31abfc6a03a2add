//! Consistency proofs: that a tree only grew (RFC 6962, section 2.1.2).

use std::collections::BTreeSet;

use crate::tree::hash::TreeHash;
use crate::tree::proof::{ProofError, split};
use crate::tree::source::{TileError, TileReader, TileSource, tiles_read};
use crate::tree::tile::Tile;

/// The proof that the tree of `old` leaves is the beginning of the tree of `new`; empty if `old` is 0 or equal to `new`.
///
/// # Errors
/// When `old` is more than `new`, or a tile cannot be read.
pub fn consistency_proof<S: TileSource>(source: &S, old: u64, new: u64) -> Result<Vec<TreeHash>, TileError<S::Error>> {
    if old > new {
        return Err(TileError::OutOfRange { position: old, size: new });
    }
    let mut proof = Vec::new();
    if old == 0 {
        return Ok(proof);
    }
    let mut tiles = TileReader::new(source, new);
    let (mut start, mut end) = (0, new);
    // While the range starts with the first leaf, the verifier already knows its root: the old root.
    while old != end {
        let middle = start + split(end - start);
        if old <= middle {
            proof.push(tiles.range(middle, end)?);
            end = middle;
        } else {
            proof.push(tiles.range(start, middle)?);
            start = middle;
        }
    }
    if start > 0 {
        proof.push(tiles.range(start, end)?);
    }
    proof.reverse();
    Ok(proof)
}

/// The tiles that [`consistency_proof`] reads; none if `old` is more than `new`.
#[must_use]
pub fn consistency_tiles(old: u64, new: u64) -> BTreeSet<Tile> {
    tiles_read(|source| consistency_proof(source, old, new).is_ok())
}

/// Checks that the tree of `old` leaves is the beginning of the tree of `new` (RFC 9162, section 2.1.4.2).
///
/// # Errors
/// When the proof does not prove it. [`ProofError::Inconsistent`] with the log's own proof is evidence of a fork.
pub fn verify_consistency(
    old: u64,
    old_root: TreeHash,
    new: u64,
    new_root: TreeHash,
    proof: &[TreeHash],
) -> Result<(), ProofError> {
    if old > new {
        return Err(ProofError::OutOfRange);
    }
    if old == 0 || old == new {
        if !proof.is_empty() {
            return Err(ProofError::WrongLength);
        }
        let empty = |size, root| size != 0 || root == TreeHash::EMPTY_TREE;
        let same = old != new || old_root == new_root;
        return if same && empty(old, old_root) && empty(new, new_root) {
            Ok(())
        } else {
            Err(ProofError::Inconsistent)
        };
    }
    let (mut node, mut last) = (old - 1, new - 1);
    while node % 2 == 1 {
        node >>= 1;
        last >>= 1;
    }
    // The root of an old tree of a power of two is itself a node of the new tree, so the proof leaves it out.
    let (first, rest) = if old.is_power_of_two() {
        (old_root, proof)
    } else {
        let (first, rest) = proof.split_first().ok_or(ProofError::WrongLength)?;
        (*first, rest)
    };
    let (mut from_old, mut from_new) = (first, first);
    for hash in rest {
        if last == 0 {
            return Err(ProofError::WrongLength);
        }
        if node % 2 == 1 || node == last {
            from_old = TreeHash::node(*hash, from_old);
            from_new = TreeHash::node(*hash, from_new);
            while node % 2 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            from_new = TreeHash::node(from_new, *hash);
        }
        node >>= 1;
        last >>= 1;
    }
    if last != 0 {
        return Err(ProofError::WrongLength);
    }
    if from_old == old_root && from_new == new_root { Ok(()) } else { Err(ProofError::Inconsistent) }
}
