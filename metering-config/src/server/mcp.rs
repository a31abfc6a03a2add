//! Configuration of the surfaces and of the MCP server.

use std::num::NonZeroUsize;

use metering_client::tools::ToolPrefix;
use serde::{Deserialize, Serialize};

use crate::server::section::section;
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
    /// The surfaces that a process serves by default. `Authorize` trusts its callers, so it must be configured
    /// explicitly.
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

section! {
    /// The MCP server.
    pub struct McpConfig;

    /// The service that tools call; by default this process itself.
    gateway: Option<String>,
    /// The service that provides balances and plans; by default the same as `gateway`.
    metering: Option<String>,
    /// Allowed `Host` names, in addition to those of `public_url` and the listening address.
    allowed_hosts: List<HostName>,
    /// Allowed `Origin`s of web pages, in addition to the service's own.
    allowed_origins: List<WebOrigin>,
    /// Concurrent sessions per account.
    max_sessions_per_key: NonZeroUsize = NonZeroUsize::new(32).expect("not zero"),
    /// Concurrent sessions in total. At the limit, a new session ends a session of the account with the most.
    max_sessions: NonZeroUsize = NonZeroUsize::new(1_000).expect("not zero"),
    /// Concurrent calls without a session, per account.
    max_calls_per_key: NonZeroUsize = NonZeroUsize::new(32).expect("not zero"),
    /// Concurrent calls without a session, in total. The closer to the limit, the fewer an account may have.
    max_calls: NonZeroUsize = NonZeroUsize::new(1_000).expect("not zero"),
    /// Concurrent sessions, and calls without a session, for an account without credit.
    max_without_credit: NonZeroUsize = NonZeroUsize::new(4).expect("not zero"),
    /// How long a session may be idle.
    idle_timeout: Span = Span::seconds(600),
    /// How often the keys of open sessions are checked: the sessions of a revoked key end shortly after this interval
    /// at the latest.
    key_check: Span = Span::seconds(2),
    /// How long a stream tool waits for its events.
    stream_wait: Span = Span::seconds(45),
    /// The prefix of the names of route tools: up to 20 letters, digits, underscores and hyphens, or nothing.
    tool_prefix: ToolPrefix,
}
