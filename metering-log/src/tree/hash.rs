//! A hash of a Merkle tree. Leaves and nodes are hashed with different prefixes, so one cannot pass for the other.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The hash of a leaf, a node or a tree: SHA-256 (RFC 6962, section 2.1). Its text is base64, in JSON too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeHash([u8; 32]);

impl TreeHash {
    /// The root of a tree without leaves: the hash of nothing.
    pub const EMPTY_TREE: Self = Self([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae,
        0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ]);

    /// The hash of a leaf with this entry.
    #[must_use]
    pub fn leaf(entry: &[u8]) -> Self {
        Self(Sha256::new().chain_update([0_u8]).chain_update(entry).finalize().into())
    }

    /// The hash of the parent of two nodes.
    #[must_use]
    pub fn node(left: Self, right: Self) -> Self {
        Self(Sha256::new().chain_update([1_u8]).chain_update(left.0).chain_update(right.0).finalize().into())
    }

    /// A hash that was computed elsewhere.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The root over a power of two of hashes, at least one.
    pub(crate) fn over(hashes: &[Self]) -> Self {
        debug_assert!(hashes.len().is_power_of_two());
        match hashes {
            [] => Self::EMPTY_TREE,
            [hash] => *hash,
            more => {
                let (left, right) = more.split_at(more.len() / 2);
                Self::node(Self::over(left), Self::over(right))
            }
        }
    }
}

/// The text is not a hash: 32 bytes in base64, with padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hash: expected 32 bytes in base64")]
pub struct MalformedHash;

impl FromStr for TreeHash {
    type Err = MalformedHash;

    fn from_str(text: &str) -> Result<Self, MalformedHash> {
        let bytes = STANDARD.decode(text).map_err(|_| MalformedHash)?;
        <[u8; 32]>::try_from(bytes).map(Self).map_err(|_| MalformedHash)
    }
}

impl fmt::Display for TreeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for TreeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreeHash({self})")
    }
}

impl Serialize for TreeHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreeHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_tree_is_the_hash_of_nothing() {
        assert_eq!(TreeHash::EMPTY_TREE.0, <[u8; 32]>::from(Sha256::digest([])));
    }

    #[test]
    fn hashes_round_trip_as_text_and_json() {
        let hash = TreeHash::leaf(b"entry");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(json, format!("\"{hash}\""));
        assert_eq!(serde_json::from_str::<TreeHash>(&json).unwrap(), hash);
    }

    #[test]
    fn other_texts_are_no_hashes() {
        let text = TreeHash::leaf(b"entry").to_string();
        for other in ["", "AAAA", text.trim_end_matches('='), &format!("{text}\n"), &format!(" {text}"), &text[1..]] {
            assert_eq!(other.parse::<TreeHash>(), Err(MalformedHash), "{other:?}");
        }
    }
}
