//! Forwarding: the section `[gateway]`.

use std::num::NonZeroUsize;

use metering_core::catalogue::HeaderPattern;
use serde::{Deserialize, Serialize};

use super::section::section;
use super::{Http2, List, Span, UpstreamConfig, UpstreamHeaders};

section! {
    /// How requests are forwarded.
    pub struct GatewayConfig;

    /// How long connecting to the upstream may take.
    connect_timeout: Span = Span::seconds(5),
    /// How long the upstream may take to start its response, and between two parts of it.
    upstream_timeout: Span = Span::seconds(30),
    /// How many idle connections to the upstream are kept open. They are divided among the workers, and each keeps at
    /// least one.
    max_idle_connections: NonZeroUsize = NonZeroUsize::new(512).expect("not zero"),
    /// Concurrent streams per key on this node.
    max_streams_per_key: NonZeroUsize = NonZeroUsize::new(16).expect("not zero"),
    /// How often the keys of open streams are checked: the streams of a revoked key end shortly after this interval at
    /// the latest.
    stream_check: Span = Span::seconds(1),
    /// How long the credits of a request that is priced by usage stay held if this node ends without settling it, 10s
    /// to 1h. A running node renews it.
    hold_lease: Span = Span::seconds(60),
    /// How long to read the rest of a response for its usage report after the client has disconnected.
    report_after_disconnect: Span = Span::seconds(600),
    /// How many bytes of it to read.
    report_after_disconnect_bytes: u64 = 64 << 20,
    /// How many such responses to read at the same time. Beyond that, reading stops, and only the delivered part is
    /// charged.
    report_after_disconnect_requests: usize = 1_000,
    /// The same for each account.
    report_after_disconnect_requests_per_account: usize = 64,
    /// How long a retry gets the response of an attempt whose client was cut off, on routes with `"replay": true`.
    replay_time: Span = Span::seconds(600),
    /// The memory that all such responses together may use, in bytes. One response may use an eighth of it; 0 keeps
    /// none.
    replay_bytes: usize = 64 << 20,
    /// Whether to send the client's `Host` to the upstream instead of the upstream's own.
    preserve_host: bool = false,
    /// The `Content-Security-Policy` added to every upstream response, in addition to the upstream's own; empty for
    /// none.
    content_security_policy: String = "sandbox".to_owned(),
    /// Whether upstream responses get `X-Content-Type-Options: nosniff`.
    nosniff: bool = true,
    /// Which headers of requests are not forwarded, in addition to those of their routes.
    request_headers: HeaderRules,
    /// Which headers of responses are not passed on, in addition to those of their routes.
    response_headers: HeaderRules,
    /// Headers that are added to every request to the default upstream, such as its credentials. They replace those of
    /// the client.
    upstream_headers: UpstreamHeaders,
    /// Whether requests to the default upstream go over HTTP/2.
    upstream_http2: Http2,
    /// Further upstreams, for the routes that name them.
    upstreams: Vec<UpstreamConfig>,
}

/// Which headers the gateway does not forward.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeaderRules {
    /// Names, or prefixes with an asterisk, such as `x-internal-*`.
    pub remove: List<HeaderPattern>,
}
