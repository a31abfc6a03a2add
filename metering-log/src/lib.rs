//! Transparency logs in published formats: the computations of a log, its witnesses and its readers, without I/O.
//!
//! - [`tree`]: Merkle trees (RFC 6962) in tiles (C2SP `tlog-tiles`), and proofs from them.
//! - [`note`], [`checkpoint`]: what a log and its witnesses sign, and [`checkpoint::Policy`], a reader's trust policy.
//! - [`witness`]: when a witness cosigns (`tlog-witness`).
//! - [`keys`]: Ed25519 keys, JWK sets and compact JWS.
//!
//! Callers supply the time, the randomness for new keys, and the tiles: over HTTP, first fetch the tiles that
//! [`tree::inclusion_tiles`] or [`tree::consistency_tiles`] names.
//!
//! ```
//! use metering_log::checkpoint::{Checkpoint, Policy, SignedCheckpoint};
//! use metering_log::keys::PrivateKey;
//! use metering_log::note::{KeyName, NoteSigner};
//! use metering_log::tree::{Leaves, TreeBuilder, TreeHash, inclusion_proof, verify_inclusion};
//!
//! let leaves = ["first", "second", "third"].map(|entry| TreeHash::leaf(entry.as_bytes()));
//! let mut tree = TreeBuilder::new();
//! for leaf in leaves {
//!     let full_tiles = tree.append(leaf);
//!     assert!(full_tiles.is_empty(), "a tile is full with 256 hashes");
//! }
//! // The log signs the head of its tree; the seed of a real key is random.
//! let signer = NoteSigner::new(KeyName::new("example.com/log")?, PrivateKey::from_seed(&[7; 32]));
//! let checkpoint = Checkpoint::new("example.com/log", tree.size(), tree.root())?;
//! let published = SignedCheckpoint::sign(checkpoint, &signer)?.to_string();
//!
//! // A reader knows the log's key, and checks that the second entry is in the tree.
//! let policy = Policy::new("example.com/log", vec![signer.verifier().clone()]);
//! let trusted = policy.open(&published)?.checkpoint;
//! let proof = inclusion_proof(&Leaves(&leaves), 1, trusted.size())?;
//! verify_inclusion(leaves[1], 1, trusted.size(), &proof, trusted.root())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

pub mod checkpoint;
mod decimal;
pub mod keys;
pub mod note;
pub mod tree;
pub mod witness;
