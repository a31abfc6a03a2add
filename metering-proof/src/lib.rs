//! Signed receipts of requests, and the leaves of the log of every posting: making them, and verifying them without the
//! service.
//!
//! [`BatchSigner`] signs many receipts with one signature, over the root of a Merkle tree of their payloads. A
//! [`SignedReceipt`] has its payload, the path to that root and the signature. The format is in `docs/provable-bills.md`.
//!
//! The log has a commitment to the [`Opening`] of each posting ([`entry`]), and stores keep openings in [`Bundle`]s.
//! The [`Sequencer`] appends to it, a [`LogReader`] makes tiles, entries and proofs of it, and [`verify_log`]
//! recomputes all of it.
//!
//! [`Statements`] makes signed statements of accounts from the log, and [`AccountStatement`] verifies one.
//!
//! ```
//! use metering_log::keys::JwkSet;
//! use metering_proof::SignedReceipt;
//!
//! # let keys = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/keys.json"));
//! # let receipt = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/receipt.txt"));
//! // The keys that the service publishes, and the value of the header `metering-receipt`.
//! let keys = JwkSet::parse(keys)?;
//! let paid = receipt.parse::<SignedReceipt>()?.verify(&keys)?;
//! assert_eq!((paid.issuer.as_str(), paid.route.as_str()), ("https://api.example.com", "GET /quotes/{number}"));
//! assert_eq!(paid.amount.atoms(), 250_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]

mod batch;
mod batch_signer;
mod bundle;
mod key_ids;
mod leaf;
mod lookup;
mod names;
mod payload;
mod reader;
mod receipt;
mod salt;
mod sequencer;
mod signed_root;
mod statement;
mod statements;
mod verify_log;

pub use batch_signer::BatchSigner;
pub use bundle::{BUNDLE_LEAVES, Bundle, ChainHead, Leaf, LeafFault, MalformedBundle, OpenedLeaf};
pub use leaf::{MalformedOpening, Opening, PUBLIC_PREFIX, Posting, entry};
pub use lookup::LogReadError;
pub use names::{Names, UnknownName};
pub use payload::{PayloadFault, ReceiptPayload};
pub use reader::{AccountLeaf, LogReader};
pub use receipt::{ReceiptFault, SignedReceipt};
pub use salt::{AccountSalts, Salt};
pub use sequencer::{Sequencer, SequencerError, Stepped};
pub use statement::{AccountStatement, StatementFault, StatementSummary};
pub use statements::{StatementError, Statements};
pub use verify_log::{LogFault, verify_log};
