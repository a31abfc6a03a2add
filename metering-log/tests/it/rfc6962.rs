//! The vectors of Certificate Transparency, as in `testonly/constants.go` and `testonly/reference_test.go` of
//! github.com/transparency-dev/merkle (commit 417fb0c3, 23 July 2026).

use metering_log::tree::{
    Leaves, TreeBuilder, TreeHash, consistency_proof, inclusion_proof, verify_consistency, verify_inclusion,
};

const ENTRIES: [&str; 8] =
    ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];

const ROOTS: [&str; 9] = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

// Nodes of the tree of eight: level and index.
const LEAF_0: &str = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
const LEAF_1: &str = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
const LEAF_4: &str = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
const NODE_1_0: &str = "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125";
const NODE_1_1: &str = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
const NODE_1_2: &str = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";
const NODE_1_3: &str = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";
const NODE_2_0: &str = "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7";
const NODE_2_1: &str = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";

fn hash(hexadecimal: &str) -> TreeHash {
    let mut bytes = [0; 32];
    hex::decode_to_slice(hexadecimal, &mut bytes).unwrap();
    TreeHash::from_bytes(bytes)
}

fn leaves() -> Vec<TreeHash> {
    ENTRIES.iter().map(|entry| TreeHash::leaf(&hex::decode(entry).unwrap())).collect()
}

#[test]
fn roots_are_those_of_certificate_transparency() {
    let mut tree = TreeBuilder::new();
    assert_eq!(tree.root(), hash(ROOTS[0]));
    for (leaf, root) in leaves().into_iter().zip(&ROOTS[1..]) {
        assert!(tree.append(leaf).is_empty());
        assert_eq!(tree.root(), hash(root));
    }
}

#[test]
fn inclusion_proofs_are_those_of_certificate_transparency() {
    let leaves = leaves();
    for (index, size, expected) in [
        (0, 1, vec![]),
        (0, 2, vec![LEAF_1]),
        (1, 2, vec![LEAF_0]),
        (2, 3, vec![NODE_1_0]),
        (1, 5, vec![LEAF_0, NODE_1_1, LEAF_4]),
        (0, 8, vec![LEAF_1, NODE_1_1, NODE_2_1]),
        (5, 8, vec![LEAF_4, NODE_1_3, NODE_2_0]),
    ] {
        let expected: Vec<_> = expected.iter().map(|node| hash(node)).collect();
        let proof = inclusion_proof(&Leaves(&leaves), index, size).unwrap();
        assert_eq!(proof, expected, "{index} of {size}");
        let leaf = leaves[usize::try_from(index).unwrap()];
        let root = hash(ROOTS[usize::try_from(size).unwrap()]);
        assert_eq!(verify_inclusion(leaf, index, size, &proof, root), Ok(()));
    }
}

#[test]
fn consistency_proofs_are_those_of_certificate_transparency() {
    let leaves = leaves();
    for (old, new, expected) in [
        (1, 1, vec![]),
        (1, 8, vec![LEAF_1, NODE_1_1, NODE_2_1]),
        (2, 5, vec![NODE_1_1, LEAF_4]),
        (6, 8, vec![NODE_1_2, NODE_1_3, NODE_2_0]),
    ] {
        let expected: Vec<_> = expected.iter().map(|node| hash(node)).collect();
        let proof = consistency_proof(&Leaves(&leaves), old, new).unwrap();
        assert_eq!(proof, expected, "{old} to {new}");
        let root = |size: u64| hash(ROOTS[usize::try_from(size).unwrap()]);
        assert_eq!(verify_consistency(old, root(old), new, root(new), &proof), Ok(()));
    }
}
