//! Trees of many sizes: our tiles and proofs against another implementation, and against damage.

use std::collections::{BTreeMap, BTreeSet};

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use metering_log::tree::{
    Leaves, ProofError, Tile, TileError, TileSource, TreeBuilder, TreeHash, consistency_proof, consistency_tiles,
    inclusion_proof, inclusion_tiles, read_root, resume_tiles, root_tiles, verify_consistency, verify_inclusion,
};
use proptest::prelude::*;
use sha2::Sha256;

type Tiles = BTreeMap<Tile, Vec<TreeHash>>;

fn entry(index: u64) -> [u8; 8] {
    index.to_be_bytes()
}

fn leaf(index: u64) -> TreeHash {
    TreeHash::leaf(&entry(index))
}

/// A tree of `size` leaves, with all its tiles.
fn grown(size: u64) -> (TreeBuilder, Tiles) {
    let mut tree = TreeBuilder::new();
    let mut tiles = Tiles::new();
    for index in 0..size {
        tiles.extend(tree.append(leaf(index)).into_iter().map(|built| (built.tile, built.hashes)));
    }
    tiles.extend(tree.partial_tiles().map(|built| (built.tile, built.hashes)));
    (tree, tiles)
}

fn bytes(proof: &[TreeHash]) -> Vec<u8> {
    proof.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

fn flipped(hash: TreeHash, bit: usize) -> TreeHash {
    let mut bytes = *hash.as_bytes();
    bytes[bit / 8 % 32] ^= 1 << (bit % 8);
    TreeHash::from_bytes(bytes)
}

/// Whether no proof with one flipped bit per hash, one hash less or one hash more passes `verify`.
fn damage_is_found(proof: &[TreeHash], bit: usize, verify: impl Fn(&[TreeHash]) -> Result<(), ProofError>) -> bool {
    let flips = (0..proof.len()).all(|place| {
        let mut damaged = proof.to_vec();
        damaged[place] = flipped(damaged[place], bit);
        verify(&damaged).is_err()
    });
    let longer = [proof, &[TreeHash::EMPTY_TREE]].concat();
    flips && verify(&longer).is_err() && proof.split_last().is_none_or(|(_, shorter)| verify(shorter).is_err())
}

#[test]
fn every_tree_to_300_leaves_has_the_proofs_of_another_implementation() {
    let (mut tree, mut tiles) = (TreeBuilder::new(), Tiles::new());
    let mut other = MemoryBackedTree::<Sha256, [u8; 8]>::new();
    let mut roots = vec![tree.root()];
    for size in 1..=300_u64 {
        other.push(entry(size - 1));
        tiles.retain(|tile, _| tile.is_full());
        tiles.extend(tree.append(leaf(size - 1)).into_iter().map(|built| (built.tile, built.hashes)));
        tiles.extend(tree.partial_tiles().map(|built| (built.tile, built.hashes)));
        let root = tree.root();
        roots.push(root);
        assert_eq!(root.as_bytes(), other.root().as_bytes().as_slice(), "the root of {size} leaves");
        assert_eq!(read_root(&tiles, size), Ok(root));

        for index in 0..size {
            let proof = inclusion_proof(&tiles, index, size).unwrap();
            let place = usize::try_from(index).unwrap();
            assert_eq!(bytes(&proof), other.prove_inclusion(place).as_bytes(), "{index} of {size}");
            assert_eq!(verify_inclusion(leaf(index), index, size, &proof, root), Ok(()));
            if (index + size) % 7 == 0 {
                let bit = place * 31;
                assert!(damage_is_found(&proof, bit, |proof| verify_inclusion(leaf(index), index, size, proof, root)));
                assert!(verify_inclusion(flipped(leaf(index), bit), index, size, &proof, root).is_err());
                assert!(verify_inclusion(leaf(index), index, size, &proof, flipped(root, bit)).is_err());
                let elsewhere = (index + 1) % size;
                assert!(size == 1 || verify_inclusion(leaf(index), elsewhere, size, &proof, root).is_err());
            }
        }
        for old in 1..size {
            let proof = consistency_proof(&tiles, old, size).unwrap();
            let place = usize::try_from(old).unwrap();
            let added = usize::try_from(size - old).unwrap();
            assert_eq!(bytes(&proof), other.prove_consistency(added).as_bytes(), "{old} to {size}");
            let old_root = roots[place];
            assert_eq!(verify_consistency(old, old_root, size, root, &proof), Ok(()));
            if (old + size) % 7 == 0 {
                let bit = place * 31;
                assert!(damage_is_found(&proof, bit, |proof| verify_consistency(old, old_root, size, root, proof)));
                assert!(verify_consistency(old, flipped(old_root, bit), size, root, &proof).is_err());
                assert!(verify_consistency(old, old_root, size, flipped(root, bit), &proof).is_err());
            }
        }
    }
}

#[test]
fn any_flipped_bit_is_found() {
    let (tree, tiles) = grown(300);
    let (old, _) = grown(77);
    let inclusion = inclusion_proof(&tiles, 258, 300).unwrap();
    let consistency = consistency_proof(&tiles, 77, 300).unwrap();
    for bit in 0..256 {
        assert!(damage_is_found(&inclusion, bit, |proof| verify_inclusion(leaf(258), 258, 300, proof, tree.root())));
        assert!(damage_is_found(&consistency, bit, |proof| {
            verify_consistency(77, old.root(), 300, tree.root(), proof)
        }));
    }
}

#[test]
fn empty_and_equal_trees_need_no_proof() {
    let (tree, tiles) = grown(5);
    let (empty, root) = (TreeHash::EMPTY_TREE, tree.root());
    assert_eq!(consistency_proof(&tiles, 0, 5), Ok(vec![]));
    assert_eq!(consistency_proof(&tiles, 5, 5), Ok(vec![]));
    assert_eq!(read_root(&Tiles::new(), 0), Ok(empty));
    assert_eq!(verify_consistency(0, empty, 0, empty, &[]), Ok(()));
    assert_eq!(verify_consistency(0, empty, 5, root, &[]), Ok(()));
    assert_eq!(verify_consistency(5, root, 5, root, &[]), Ok(()));
    assert_eq!(verify_consistency(0, empty, 5, root, &[root]), Err(ProofError::WrongLength));
    assert_eq!(verify_consistency(5, root, 5, root, &[root]), Err(ProofError::WrongLength));
    assert_eq!(verify_consistency(5, empty, 5, root, &[]), Err(ProofError::Inconsistent));
    assert_eq!(verify_consistency(0, root, 5, root, &[]), Err(ProofError::Inconsistent));
    assert_eq!(verify_consistency(0, root, 0, root, &[]), Err(ProofError::Inconsistent));
    assert_eq!(verify_consistency(6, root, 5, root, &[]), Err(ProofError::OutOfRange));
    assert_eq!(verify_consistency(3, root, 5, root, &[]), Err(ProofError::WrongLength));
    assert_eq!(verify_inclusion(root, 5, 5, &[], root), Err(ProofError::OutOfRange));
    assert_eq!(verify_inclusion(root, 0, 0, &[], root), Err(ProofError::OutOfRange));
}

#[test]
fn positions_outside_the_tree_have_no_proof() {
    let (_, tiles) = grown(5);
    assert_eq!(inclusion_proof(&tiles, 5, 5), Err(TileError::OutOfRange { position: 5, size: 5 }));
    assert_eq!(consistency_proof(&tiles, 6, 5), Err(TileError::OutOfRange { position: 6, size: 5 }));
    assert!(inclusion_tiles(5, 5).is_empty() && consistency_tiles(6, 5).is_empty());
}

#[test]
fn missing_and_short_tiles_are_named() {
    let (_, mut tiles) = grown(300);
    let partial = Tile::in_tree(0, 1, 300).unwrap();
    tiles.get_mut(&partial).unwrap().pop();
    assert_eq!(read_root(&tiles, 300), Err(TileError::Short { tile: partial, hashes: 43 }));
    tiles.remove(&partial);
    assert_eq!(
        read_root(&tiles, 300).unwrap_err().to_string(),
        "could not read tile/0/001.p/44: tile/0/001.p/44 is missing"
    );
}

#[test]
fn a_full_tile_stands_in_for_a_partial_one() {
    let (tree, _) = grown(300);
    let (_, later) = grown(512);
    let full: Tiles = later.into_iter().filter(|(tile, _)| tile.level() == 0 && tile.is_full()).collect();
    let partial = Tile::in_tree(1, 0, 300).unwrap();
    let (_, at_300) = grown(300);
    let mut tiles = full;
    tiles.insert(partial, at_300[&partial].clone());
    assert_eq!(read_root(&tiles, 300), Ok(tree.root()));
}

/// A tile of a tree whose leaves and nodes are all the same hash: large trees need no memory.
struct Uniform;

impl TileSource for Uniform {
    type Error = std::convert::Infallible;

    fn read(&self, tile: Tile) -> Result<Vec<TreeHash>, Self::Error> {
        let mut hash = TreeHash::leaf(b"same");
        for _ in 0..8 * u32::from(tile.level()) {
            hash = TreeHash::node(hash, hash);
        }
        Ok(vec![hash; tile.width().into()])
    }
}

#[test]
fn the_largest_tree_has_proofs() {
    let size = u64::MAX >> 1;
    let root = read_root(&Uniform, size).unwrap();
    for index in [0, 1, size / 2, size - 1] {
        let proof = inclusion_proof(&Uniform, index, size).unwrap();
        assert_eq!(verify_inclusion(TreeHash::leaf(b"same"), index, size, &proof, root), Ok(()));
    }
    for old in [1, size / 3, 1 << 62, size - 1] {
        let old_root = read_root(&Uniform, old).unwrap();
        let proof = consistency_proof(&Uniform, old, size).unwrap();
        assert!(proof.len() <= 63, "a witness takes at most 63 hashes");
        assert_eq!(verify_consistency(old, old_root, size, root, &proof), Ok(()));
    }
}

proptest! {
    #[test]
    fn tiles_named_in_advance_are_enough(size in 1..70_000_u64, one: u64, another: u64) {
        let (index, old) = (one % size, another % size + 1);
        let only = |tiles: BTreeSet<Tile>| -> Tiles {
            tiles.into_iter().map(|tile| (tile, Uniform.read(tile).unwrap())).collect()
        };
        let proof = inclusion_proof(&only(inclusion_tiles(index, size)), index, size);
        prop_assert_eq!(proof, Ok(inclusion_proof(&Uniform, index, size).unwrap()));
        let proof = consistency_proof(&only(consistency_tiles(old, size)), old, size);
        prop_assert_eq!(proof, Ok(consistency_proof(&Uniform, old, size).unwrap()));
        let root = read_root(&only(root_tiles(size)), size);
        prop_assert_eq!(root, Ok(read_root(&Uniform, size).unwrap()));
    }

    #[test]
    fn resumed_trees_grow_as_the_others(size in 0..1500_u64, more in 0..600_u64) {
        let (whole, tiles) = grown(size + more);
        let (_, before) = grown(size);
        let needed = resume_tiles(size);
        let edge: Tiles = before.clone().into_iter().filter(|(tile, _)| needed.contains(tile)).collect();
        let mut resumed = TreeBuilder::resume(&edge, size).unwrap();
        let mut built = before;
        built.retain(|tile, _| tile.is_full());
        for index in size..size + more {
            built.extend(resumed.append(leaf(index)).into_iter().map(|built| (built.tile, built.hashes)));
        }
        built.extend(resumed.partial_tiles().map(|built| (built.tile, built.hashes)));
        prop_assert_eq!(resumed.root(), whole.root());
        prop_assert_eq!(resumed.size(), size + more);
        prop_assert_eq!(&built, &tiles);
        // A log writes exactly these tiles when it grows from one size to the next.
        prop_assert!(Tile::added(size, size + more).all(|tile| built.contains_key(&tile)));
        prop_assert_eq!(Tile::added(0, size + more).count(), built.len());
    }

    #[test]
    fn leaves_in_memory_are_the_same_tree(size in 0..700_u64) {
        let (tree, tiles) = grown(size);
        let leaves: Vec<_> = (0..size).map(leaf).collect();
        prop_assert_eq!(read_root(&Leaves(&leaves), size), Ok(tree.root()));
        for (tile, hashes) in &tiles {
            prop_assert_eq!(Leaves(&leaves).read(*tile), Ok(hashes.clone()));
        }
    }
}
