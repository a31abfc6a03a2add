//! Sessions of browsers, as the holders of their keys see them.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// A session of a browser. Its token is in the browser's cookie only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BrowserSessionDocument {
    /// Its public id.
    pub id: String,
    /// The browser and system that it is on, as the browser reported.
    pub device: String,
    /// Whether this request was sent with the session.
    pub current: bool,
    /// The key whose rights it has.
    pub key_id: String,
    /// The name of that key.
    pub key_name: String,
    /// The member whose session it is: an email address or a wallet. Left out for a session of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The member's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// When it was opened, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it was last used, to within ten minutes.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last_used_at: Timestamp,
    /// When it ends if it is not used again.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: Timestamp,
}

/// The response to `POST /api-key/sessions` and `POST /api-key/sessions/email/confirm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BrowserSessionResponse {
    /// The session.
    pub data: BrowserSessionDocument,
}

/// The response to `GET /api-key/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BrowserSessionsDocument {
    /// The sessions of the caller's key and its child keys, the most recently used first.
    pub data: Vec<BrowserSessionDocument>,
}

/// The response to requests that end sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EndedSessionsResponse {
    /// How many were ended.
    pub ended: u64,
}
