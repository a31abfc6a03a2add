//! Connections: the section `[http]`.

use std::num::NonZeroUsize;

use super::section::section;
use super::{List, Span, TrustedProxies, WebOrigin};

section! {
    /// Timeouts and limits of HTTP connections.
    pub struct HttpConfig;

    /// How long a connection may take to send a request's head, and how long it may be idle between requests.
    header_timeout: Span = Span::seconds(15),
    /// How long a client may pause within a request's body.
    body_timeout: Span = Span::seconds(15),
    /// How fast a request's body must arrive on average, in bytes per second, after the first `body_timeout`; 0 for no
    /// minimum rate.
    body_min_rate: u64 = 500,
    /// How long a client may stop reading a response before its connection is closed.
    write_timeout: Span = Span::seconds(30),
    /// The largest body, in bytes.
    max_body_bytes: usize = 64 * 1024,
    /// The memory that all request bodies together may use while they arrive and are served, in bytes. Buffered
    /// responses may use half of it. At least `max_body_bytes`.
    body_budget_bytes: usize = 256 << 20,
    /// The same per client address (per /64 for IPv6), trusted proxies excepted.
    body_budget_per_address_bytes: usize = 64 << 20,
    /// The largest head, in bytes; at least 8192.
    max_header_bytes: usize = 32 * 1024,
    /// Concurrent connections. At the limit, an idle connection is closed for a new one; while all are busy, the new
    /// one waits.
    max_connections: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero"),
    /// Concurrent connections per client address (per /64 for IPv6), trusted proxies excepted. At the limit, an idle
    /// connection is closed for a new one; while all are busy, the new one is refused.
    max_connections_per_address: NonZeroUsize = NonZeroUsize::new(1_000).expect("not zero"),
    /// The proxies whose `X-Forwarded-For` is trusted.
    trusted_proxies: TrustedProxies,
    /// Other origins whose web pages may call the API, the gateway and the MCP server (CORS).
    allowed_origins: List<WebOrigin>,
    /// How long a shutdown waits for requests to finish.
    shutdown_grace: Span = Span::seconds(20),
}
