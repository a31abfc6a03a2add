//! Rotating a key: with the wallet that paid, or with the key itself.

use serde::{Deserialize, Serialize};

use crate::access::account::RateLimits;
use crate::money::credits::Credits;
use crate::shown_fields::shown_fields;
use crate::wire::keys::RemainingKeyDocument;
use crate::wire::secret::IssuedKey;

/// The body of `POST /api-key/recover/challenge`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChallengeRequest {
    /// The wallet that paid for the account.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub address: Option<String>,
}

/// The response to `POST /api-key/recover/challenge`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChallengeResponse {
    /// Identifies the challenge.
    pub nonce: String,
    /// The text to sign, unchanged (EIP-191).
    pub message: String,
    /// When the challenge expires, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub expires_at: String,
    /// Seconds until it expires.
    pub expires_in: u64,
}

/// The body of `POST /api-key/recover/verify`.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerifyRequest {
    /// The wallet that signed.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub address: Option<String>,
    /// The challenge's nonce.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub nonce: Option<String>,
    /// The signature of the challenge's message.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub signature: Option<String>,
}

shown_fields!(VerifyRequest: address);

/// The response to `POST /api-key/recover/verify` and `POST /keys/current/rotate`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VerifyResponse {
    /// `ok`.
    pub status: &'static str,
    /// Always true.
    pub rotated: bool,
    /// The account's new key, shown only once. The old one is rejected from now on; after a recovery, so is every other
    /// key that could manage keys.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub api_key: IssuedKey,
    /// The account's id.
    pub org_id: String,
    /// Credits left.
    #[cfg_attr(feature = "openapi", schema(value_type = f64))]
    pub credit_balance: Credits,
    /// Rate limits on accepted requests; 0 means no limit.
    pub rate_limits: RateLimits,
    /// The other keys that still work: those that cannot manage keys. Delete those that you do not recognise. If
    /// someone else had a key that could manage keys, rotate the others too. Left out when only one key was rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_keys: Option<Vec<RemainingKeyDocument>>,
}
