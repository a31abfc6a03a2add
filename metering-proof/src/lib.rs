//! Signed receipts of requests: making them, and verifying them without the service.
//!
//! [`BatchSigner`] signs many receipts with one signature, over the root of a Merkle tree of their payloads. A
//! [`SignedReceipt`] has its payload, the path to that root and the signature. The format is in `docs/provable-bills.md`.
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
mod key_ids;
mod payload;
mod receipt;
mod signed_root;

pub use batch_signer::BatchSigner;
pub use payload::{PayloadFault, ReceiptPayload};
pub use receipt::{ReceiptFault, SignedReceipt};
