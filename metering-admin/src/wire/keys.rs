//! Requests of operators for keys. The responses are those of the owners' API.

use metering_core::wire::{ChangeKeyRequest, CreateKeyRequest};
use serde::{Deserialize, Serialize};

/// A key to create, as a child of the account's first one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewKeyRequest {
    /// The key.
    pub key: CreateKeyRequest,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A change of a key's terms.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyChangeRequest {
    /// The terms to change. Omitted fields are unchanged; null removes a restriction.
    pub change: ChangeKeyRequest,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A rotation of a key.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KeyRotationRequest {
    /// How many more seconds the old secret works, at most a week. 0 by default.
    #[serde(default)]
    pub grace_seconds: Option<u32>,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
