//! The result of a reload of the configuration.

use serde::{Deserialize, Serialize};

/// A reload of the configuration that was carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReloadDocument {
    /// The keys whose new values are in use, sorted. `catalogue` and `tls.certificate` also if only their files
    /// changed.
    pub changed: Vec<String>,
    /// The keys that have new values which only a restart takes, sorted.
    pub needs_restart: Vec<String>,
}
