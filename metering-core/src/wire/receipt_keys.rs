//! The keys that receipts of requests and the log of postings are signed with, as they are published.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// A JWK set (RFC 7517, section 5): the response to `GET /.well-known/metering-keys`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReceiptKeysDocument {
    /// The key that signs now, and those that signed before.
    pub keys: Vec<ReceiptKeyDocument>,
    /// The log of postings, if the service signs one: its epochs, in order. The last one grows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogDocument>,
}

/// An epoch of the log of postings (C2SP `tlog-tiles`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogDocument {
    /// Its number.
    pub epoch: u32,
    /// Its origin, as in its checkpoints.
    pub origin: String,
    /// The verifier key of its checkpoints. Pin a key that you got from another source; use this one to check that you
    /// have the right one.
    pub vkey: String,
    /// The verifier keys of earlier checkpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous_vkeys: Vec<String>,
    /// Where it is served: `checkpoint` and `tile/` are below this URL.
    pub url: String,
    /// When it began.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub began_at: Timestamp,
}

/// A public key of Ed25519 (RFC 8037, section 2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReceiptKeyDocument {
    /// `OKP`.
    pub kty: String,
    /// `Ed25519`.
    pub crv: String,
    /// The key, in base64url.
    pub x: String,
    /// Its thumbprint (RFC 7638), by which receipts name it.
    pub kid: String,
    /// `sig`.
    #[serde(rename = "use")]
    pub usage: String,
    /// `EdDSA`.
    pub alg: String,
}
