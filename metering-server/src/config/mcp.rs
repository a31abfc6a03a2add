//! The surfaces that a process serves, and the MCP server, as configured.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::config::{HostName, List, Span, WebOrigin};

/// A part of the service that can be served by a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// Accounts, credits, signing up, the pages.
    Metering,
    /// The catalogue's routes.
    Gateway,
    /// The routes as MCP tools.
    Mcp,
}

impl Surface {
    /// All of them, the default.
    pub const ALL: [Self; 3] = [Self::Metering, Self::Gateway, Self::Mcp];
}

/// The MCP server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// The service that tools call; by default this process itself.
    pub gateway: Option<String>,
    /// Where balances and plans are asked for; by default where the gateway is.
    pub metering: Option<String>,
    /// Names that requests may be addressed to (`Host`), beside those of `public_url` and of the listening address.
    pub allowed_hosts: List<HostName>,
    /// Web pages that may call (`Origin`), beside our own.
    pub allowed_origins: List<WebOrigin>,
    /// Sessions that one account may have open.
    pub max_sessions_per_key: NonZeroUsize,
    /// Sessions in all. For one more, one of the account with the most is ended.
    pub max_sessions: NonZeroUsize,
    /// Calls without a session that one account may have in progress.
    pub max_calls_per_key: NonZeroUsize,
    /// Such calls in all. The fewer are left, the fewer an account may have.
    pub max_calls: NonZeroUsize,
    /// Sessions, and calls, that an account without credit may have.
    pub max_without_credit: NonZeroUsize,
    /// How long a session may say nothing.
    pub idle_timeout: Span,
    /// How often the keys of open sessions are looked up: one that was revoked ends within this and a little more.
    pub key_check: Span,
    /// How long a stream tool waits for its events.
    pub stream_wait: Span,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            gateway: None,
            metering: None,
            allowed_hosts: List::default(),
            allowed_origins: List::default(),
            max_sessions_per_key: NonZeroUsize::new(32).expect("not zero"),
            max_sessions: NonZeroUsize::new(1_000).expect("not zero"),
            max_calls_per_key: NonZeroUsize::new(32).expect("not zero"),
            max_calls: NonZeroUsize::new(1_000).expect("not zero"),
            max_without_credit: NonZeroUsize::new(4).expect("not zero"),
            idle_timeout: Span::seconds(600),
            key_check: Span::seconds(2),
            stream_wait: Span::seconds(45),
        }
    }
}
