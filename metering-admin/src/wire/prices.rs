//! Price versions, as operators see them.

use metering_core::clock::Timestamp;
use metering_core::prices::{PriceHistory, PriceVersion};
use serde::{Deserialize, Serialize};

/// A catalogue to apply.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApplyCatalogueRequest {
    /// The text of the catalogue file.
    pub catalogue: String,
    /// When it takes effect on all nodes, as RFC 3339, at least 15 seconds ahead; 30 seconds ahead by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: Option<String>,
    /// Why, for the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A catalogue that was, is or will be in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PriceVersionDocument {
    /// Its number, in the order of recording.
    pub number: u32,
    /// `scheduled`, `in_force`, `past` or `cancelled`.
    pub status: String,
    /// Since when it is in force, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub since: String,
    /// The SHA3-256 of the catalogue's text, in hex.
    pub hash: String,
    /// Who applied it; null if a server took it from the file that its configuration names.
    pub applied_by: Option<String>,
    /// When it was recorded, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub recorded_at: String,
    /// When it was cancelled, as RFC 3339; null if it was not.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub cancelled_at: Option<String>,
}

/// All price versions of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PriceVersionsDocument {
    /// The versions, newest first.
    pub versions: Vec<PriceVersionDocument>,
}

impl PriceVersionDocument {
    /// A version of a history, in its state at `now`.
    #[must_use]
    pub fn new(version: &PriceVersion, history: &PriceHistory, now: Timestamp) -> Self {
        let status = match history.in_force(now) {
            _ if version.cancelled_at.is_some() => "cancelled",
            _ if version.since > now => "scheduled",
            Some(current) if current.number == version.number => "in_force",
            _ => "past",
        };
        Self {
            number: version.number.0,
            status: status.to_owned(),
            since: version.since.to_string(),
            hash: version.hash.to_string(),
            applied_by: version.applied_by.as_ref().map(ToString::to_string),
            recorded_at: version.recorded_at.to_string(),
            cancelled_at: version.cancelled_at.map(|at| at.to_string()),
        }
    }
}

impl PriceVersionsDocument {
    /// The versions of a history, in their states at `now`.
    #[must_use]
    pub fn new(history: &PriceHistory, now: Timestamp) -> Self {
        let newest_first = history.versions().iter().rev();
        Self { versions: newest_first.map(|version| PriceVersionDocument::new(version, history, now)).collect() }
    }
}
