//! The section `[oauth]`.

use serde::{Deserialize, Serialize};

use super::{List, WebOrigin};

/// Programs that get a key with their owner's consent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OAuthConfig {
    /// Whether programs may request keys; by default, wherever that is safe: with the pages, and a `public_url` that
    /// starts with `https://` and has no path.
    pub enabled: Option<bool>,
    /// Origins of processes that serve MCP alone, such as `https://mcp.example.com`, if they differ from that of this
    /// service: tokens may name them.
    pub resources: List<WebOrigin>,
}
