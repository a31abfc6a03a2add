//! Forwarding: the section `[gateway]`.

use std::num::NonZeroUsize;

use metering_core::catalogue::HeaderPattern;
use serde::{Deserialize, Serialize};

use super::{Http2, List, Span, UpstreamConfig, UpstreamHeaders};

/// How requests are forwarded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// How long connecting to the upstream may take.
    pub connect_timeout: Span,
    /// How long the upstream may take to start its response, and between two parts of it.
    pub upstream_timeout: Span,
    /// How many idle connections to the upstream are kept open. They are divided among the workers, and each keeps at
    /// least one.
    pub max_idle_connections: NonZeroUsize,
    /// Concurrent streams per key on this node.
    pub max_streams_per_key: NonZeroUsize,
    /// How often the keys of open streams are checked: the streams of a revoked key end shortly after this interval at
    /// the latest.
    pub stream_check: Span,
    /// How long the credits of a request that is priced by usage stay held if this node ends without settling it, 10s
    /// to 1h. A node that runs renews it.
    pub hold_lease: Span,
    /// How long the rest of a response is read for its report of the cost, after its client has disconnected.
    pub report_after_disconnect: Span,
    /// How much of it is read, in bytes.
    pub report_after_disconnect_bytes: u64,
    /// How many such responses are read at the same time. Further ones are not read on: what was delivered is charged.
    pub report_after_disconnect_requests: usize,
    /// The same for each account.
    pub report_after_disconnect_requests_per_account: usize,
    /// How long a retry gets the response of an attempt whose client was cut off, on routes with `"replay": true`.
    pub replay_time: Span,
    /// How much memory such responses may take together, in bytes. One may take an eighth of it; 0 keeps none.
    pub replay_bytes: usize,
    /// Whether to send the client's `Host` to the upstream instead of the upstream's own.
    pub preserve_host: bool,
    /// The `Content-Security-Policy` added to every upstream response, in addition to the upstream's own; empty for
    /// none.
    pub content_security_policy: String,
    /// Whether upstream responses get `X-Content-Type-Options: nosniff`.
    pub nosniff: bool,
    /// Which headers of requests are not forwarded, in addition to those of their routes.
    pub request_headers: HeaderRules,
    /// Which headers of responses are not passed on, in addition to those of their routes.
    pub response_headers: HeaderRules,
    /// Headers that are added to every request to the default upstream, such as credentials. They replace those of the
    /// client.
    pub upstream_headers: UpstreamHeaders,
    /// Whether requests to the default upstream go over HTTP/2.
    pub upstream_http2: Http2,
    /// Further upstreams, for the routes that name them.
    pub upstreams: Vec<UpstreamConfig>,
}

/// Which headers do not pass the gateway.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeaderRules {
    /// Names, or beginnings of names with an asterisk.
    pub remove: List<HeaderPattern>,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Span::seconds(5),
            upstream_timeout: Span::seconds(30),
            max_idle_connections: NonZeroUsize::new(512).expect("not zero"),
            max_streams_per_key: NonZeroUsize::new(16).expect("not zero"),
            stream_check: Span::seconds(1),
            hold_lease: Span::seconds(60),
            report_after_disconnect: Span::seconds(600),
            report_after_disconnect_bytes: 64 << 20,
            report_after_disconnect_requests: 1_000,
            report_after_disconnect_requests_per_account: 64,
            replay_time: Span::seconds(600),
            replay_bytes: 64 << 20,
            preserve_host: false,
            content_security_policy: "sandbox".to_owned(),
            nosniff: true,
            request_headers: HeaderRules::default(),
            response_headers: HeaderRules::default(),
            upstream_headers: UpstreamHeaders::default(),
            upstream_http2: Http2::default(),
            upstreams: Vec::new(),
        }
    }
}
