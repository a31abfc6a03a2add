//! The keys that receipts of requests are signed with, as they are published.

use serde::{Deserialize, Serialize};

/// A JWK set (RFC 7517, section 5): the response to `GET /.well-known/metering-keys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReceiptKeysDocument {
    /// The key that signs now, and those that signed before.
    pub keys: Vec<ReceiptKeyDocument>,
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
