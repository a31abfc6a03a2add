//! The section `[oauth]`.

use serde::{Deserialize, Serialize};

/// Programs that get a key by their owner's consent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OAuthConfig {
    /// Whether programs may ask for keys; by default, wherever that is safe.
    pub enabled: Option<bool>,
}
