//! The section `[oauth]`.

use serde::{Deserialize, Serialize};

use super::{List, WebOrigin};

/// Programs that get a key by their owner's consent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OAuthConfig {
    /// Whether programs may ask for keys; by default, wherever that is safe.
    pub enabled: Option<bool>,
    /// Origins of processes that serve MCP alone, if they differ from that of this service: tokens may be for them.
    pub resources: List<WebOrigin>,
}
