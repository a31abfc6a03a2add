//! Connections: the section `[http]`.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::{List, Span, TrustedProxies, WebOrigin};

/// Timeouts and limits of HTTP connections.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// How long a connection may take to send a request's head, and how long it may be idle between requests.
    pub header_timeout: Span,
    /// How long a client may pause within a request's body.
    pub body_timeout: Span,
    /// How fast a request's body must arrive on average, in bytes per second, after the first `body_timeout`; 0 for no
    /// lowest rate.
    pub body_min_rate: u64,
    /// How long a client may read nothing of a response before its connection is closed.
    pub write_timeout: Span,
    /// The largest body, in bytes.
    pub max_body_bytes: usize,
    /// How much memory the bodies of requests may take together while they arrive and are served, in bytes. Responses
    /// that are kept for a while may take half of it. At least `max_body_bytes`.
    pub body_budget_bytes: usize,
    /// The same per client address (per /64 for IPv6), trusted proxies excepted.
    pub body_budget_per_address_bytes: usize,
    /// The largest head, in bytes; at least 8192.
    pub max_header_bytes: usize,
    /// Concurrent connections. At the limit, an idle connection is closed for a new one; while all are busy, the new
    /// one waits.
    pub max_connections: NonZeroUsize,
    /// Concurrent connections per client address (per /64 for IPv6), trusted proxies excepted. At the limit, an idle
    /// connection is closed for a new one; while all are busy, the new one is refused.
    pub max_connections_per_address: NonZeroUsize,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
    /// Other origins whose web pages may call the API, the gateway and the MCP server (CORS).
    pub allowed_origins: List<WebOrigin>,
    /// How long a shutdown waits for requests to finish.
    pub shutdown_grace: Span,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            header_timeout: Span::seconds(15),
            body_timeout: Span::seconds(15),
            body_min_rate: 500,
            write_timeout: Span::seconds(30),
            max_body_bytes: 64 * 1024,
            body_budget_bytes: 256 << 20,
            body_budget_per_address_bytes: 64 << 20,
            max_header_bytes: 32 * 1024,
            max_connections: NonZeroUsize::new(10_000).expect("not zero"),
            max_connections_per_address: NonZeroUsize::new(1_000).expect("not zero"),
            trusted_proxies: TrustedProxies::default(),
            allowed_origins: List::default(),
            shutdown_grace: Span::seconds(20),
        }
    }
}
