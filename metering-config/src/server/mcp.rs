//! Configuration of the surfaces and of the MCP server.

use std::num::NonZeroUsize;

use metering_client::tools::ToolPrefix;
use serde::{Deserialize, Serialize};

use crate::server::{HostName, List, Span, WebOrigin};

/// A part of the service that a separate process can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// Accounts, credits, signup and the pages.
    Metering,
    /// The routes of the catalogue.
    Gateway,
    /// The routes as MCP tools.
    Mcp,
    /// The endpoint that proxies ask before they forward a request.
    Authorize,
}

impl Surface {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Metering, Self::Gateway, Self::Mcp, Self::Authorize];
    /// Those that a process serves by default. `Authorize` trusts what its callers say, so it must be asked for.
    pub const DEFAULT: [Self; 3] = [Self::Metering, Self::Gateway, Self::Mcp];

    /// Its name, in the configuration and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Metering => "metering",
            Self::Gateway => "gateway",
            Self::Mcp => "mcp",
            Self::Authorize => "authorize",
        }
    }
}

/// The MCP server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// The service that tools call; by default this process itself.
    pub gateway: Option<String>,
    /// The service that provides balances and plans; by default the same as `gateway`.
    pub metering: Option<String>,
    /// Allowed `Host` names, in addition to those of `public_url` and the listening address.
    pub allowed_hosts: List<HostName>,
    /// Allowed `Origin`s of web pages, in addition to the service's own.
    pub allowed_origins: List<WebOrigin>,
    /// Concurrent sessions per account.
    pub max_sessions_per_key: NonZeroUsize,
    /// Concurrent sessions in total. At the limit, a new session ends one of the account that has the most.
    pub max_sessions: NonZeroUsize,
    /// Concurrent calls without a session, per account.
    pub max_calls_per_key: NonZeroUsize,
    /// Concurrent calls without a session, in total. The closer to the limit, the fewer an account may have.
    pub max_calls: NonZeroUsize,
    /// Concurrent sessions, and calls without a session, for an account without credit.
    pub max_without_credit: NonZeroUsize,
    /// How long a session may be idle.
    pub idle_timeout: Span,
    /// How often the keys of open sessions are checked: the sessions of a revoked key end shortly after this interval
    /// at the latest.
    pub key_check: Span,
    /// How long a stream tool waits for its events.
    pub stream_wait: Span,
    /// The prefix of the names of route tools: up to 20 letters, digits, underscores and hyphens, or nothing.
    pub tool_prefix: ToolPrefix,
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
            tool_prefix: ToolPrefix::default(),
        }
    }
}
