//! Tiles, bundles and proofs as bytes: a size, a position and hashes that nobody made. No proof from noise holds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_log::tree::{
    ProofError, Tile, TreeHash, consistency_tiles, inclusion_tiles, read_entries, read_tile, root_from_inclusion,
    tile_bytes, verify_consistency,
};

fuzz_target!(|input: (u64, u64, u16, &[u8])| {
    let (size, position, width, bytes) = input;
    if let Ok(hashes) = read_tile(bytes, width) {
        assert_eq!(tile_bytes(&hashes), bytes);
    }
    if let Ok(entries) = read_entries(bytes, width) {
        assert_eq!(entries.iter().map(|entry| entry.len() + 2).sum::<usize>(), bytes.len());
    }
    let proof: Vec<_> = bytes.chunks_exact(32).map(|hash| TreeHash::from_bytes(hash.try_into().unwrap())).collect();
    let leaf = TreeHash::leaf(bytes);
    if root_from_inclusion(leaf, position, size, &proof).is_ok() {
        assert!(position < size && proof.len() <= 64);
    }
    let holds = verify_consistency(position, leaf, size, TreeHash::leaf(b"new"), &proof);
    assert!(matches!(holds, Err(ProofError::OutOfRange | ProofError::WrongLength | ProofError::Inconsistent)));
    for tile in inclusion_tiles(position, size).into_iter().chain(consistency_tiles(position, size)) {
        assert!(tile.is_in(size) && Tile::in_tree(tile.level(), tile.index(), size) == Some(tile));
    }
});
