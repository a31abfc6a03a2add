//! A batch of receipts with one signature: the Merkle tree over their payloads (RFC 6962, section 2.1), wholly in memory.

use metering_core::Timestamp;
use metering_log::keys::PrivateKey;
use metering_log::tree::TreeHash;

use crate::receipt::SignedReceipt;
use crate::signed_root::SignedRoot;

/// A batch that was signed.
#[derive(Debug)]
pub(crate) struct SignedBatch {
    /// The hashes of each level, from the leaves to the root. The last hash of a level of odd length is repeated in the
    /// next level.
    levels: Vec<Vec<TreeHash>>,
    jws: String,
}

impl SignedBatch {
    /// Signs the tree of these leaves.
    pub(crate) fn sign(
        leaves: Vec<TreeHash>,
        issuer: String,
        now: Timestamp,
        key: &PrivateKey,
    ) -> Result<Self, serde_json::Error> {
        let size = count(leaves.len());
        let levels = levels(leaves);
        let root = levels.last().and_then(|top| top.first()).copied().unwrap_or(TreeHash::EMPTY_TREE);
        let jws = SignedRoot::new(issuer, now, root, size).sign(key)?;
        Ok(Self { levels, jws })
    }

    /// The receipt with this payload, whose hash is the leaf at this place.
    pub(crate) fn receipt(&self, payload: Vec<u8>, place: usize) -> SignedReceipt {
        let size = self.levels.first().map_or(0, Vec::len);
        SignedReceipt::new(payload, (count(place), count(size)), self.path(place), self.jws.clone())
    }

    /// The sibling hashes on the path from a leaf to the root.
    fn path(&self, place: usize) -> Vec<TreeHash> {
        let sibling = |(height, level): (usize, &Vec<TreeHash>)| level.get((place >> height) ^ 1).copied();
        self.levels.iter().enumerate().filter_map(sibling).collect()
    }
}

fn levels(leaves: Vec<TreeHash>) -> Vec<Vec<TreeHash>> {
    let mut levels = vec![leaves];
    while let Some(level) = levels.last().filter(|level| level.len() > 1) {
        let node = |pair: &[TreeHash]| if let [left, right] = pair { TreeHash::node(*left, *right) } else { pair[0] };
        let above = level.chunks(2).map(node).collect();
        levels.push(above);
    }
    levels
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use metering_log::keys::JwkSet;
    use metering_log::tree::{Leaves, inclusion_proof};

    use super::*;

    #[test]
    fn paths_are_inclusion_proofs_of_rfc_6962() {
        let leaves: Vec<TreeHash> = (0..300_u32).map(|number| TreeHash::leaf(&number.to_be_bytes())).collect();
        for size in (1..=33).chain([255, 256, 257, 300]) {
            let batch = SignedBatch { levels: levels(leaves[..size].to_vec()), jws: String::new() };
            for place in 0..size {
                let expected = inclusion_proof(&Leaves(&leaves[..size]), count(place), count(size)).unwrap();
                assert_eq!(batch.path(place), expected, "{place} of {size}");
            }
        }
    }

    /// The example was made with other programs: Python's hashlib and cryptography.
    #[test]
    fn the_example_is_made_bit_by_bit() {
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49,
            0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
        ];
        let key = PrivateKey::from_seed(&seed);
        let payload = include_str!("../tests/vectors/payload.json").trim().as_bytes().to_vec();
        let leaves = [b"first".as_slice(), payload.as_slice(), b"third".as_slice()].map(TreeHash::leaf).to_vec();
        let now = Timestamp::from_unix_millis(1_795_248_000_005);
        let batch = SignedBatch::sign(leaves, "https://api.example.com".to_owned(), now, &key).unwrap();
        assert_eq!(batch.receipt(payload, 1).to_string(), include_str!("../tests/vectors/receipt.txt").trim());
        assert_eq!(JwkSet::new([key.public()]).to_json(), include_str!("../tests/vectors/keys.json").trim());
    }
}
