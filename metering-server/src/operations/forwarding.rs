//! Counts what proxies really send in `X-Forwarded-For`, for `metering admin doctor`: a configuration shows only what
//! they should send.

use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderName, Request};
use metrics::Counter;

use crate::http::ClientAddress;
use crate::operations::metric::counter;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Proxies and balancers ask these for themselves, without a client.
const OWN_PATHS: [&str; 3] = ["/health", "/ready", "/metrics"];

/// The counters of requests, by sender and header.
pub(crate) struct Forwarding {
    named: Counter,
    nameless: Counter,
    untrusted: Counter,
    said: AtomicBool,
}

/// The kind of a request's sender, and its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    /// A trusted proxy, which names the client.
    Named,
    /// A trusted proxy, which does not: all clients behind it share its address.
    Nameless,
    /// An untrusted peer, whose header is ignored.
    Untrusted,
    /// A client without a proxy, or a proxy for itself.
    Direct,
}

impl Forwarding {
    pub(crate) fn new() -> Self {
        let of = |sender: &'static str| {
            counter!(
                "metering_forwarded_requests_total",
                "Requests from trusted proxies, and others with X-Forwarded-For, by sender",
                "sender" => sender
            )
        };
        let (named, nameless, untrusted) = (of("proxy"), of("proxy_without_header"), of("untrusted_with_header"));
        Self { named, nameless, untrusted, said: AtomicBool::new(false) }
    }

    pub(crate) fn count<B>(&self, request: &Request<B>) {
        let Some(address) = request.extensions().get::<ClientAddress>() else { return };
        match sender(address.is_from_proxy(), request.headers(), request.uri().path()) {
            Sender::Named => self.named.increment(1),
            Sender::Nameless => self.nameless.increment(1),
            Sender::Untrusted => {
                self.untrusted.increment(1);
                if !self.said.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        peer = %address.ip(),
                        "X-Forwarded-For came from an address that is not among http.trusted_proxies, and is ignored; if \
                         this is your proxy, list it (said once)"
                    );
                }
            }
            Sender::Direct => {}
        }
    }
}

fn sender(is_from_proxy: bool, headers: &HeaderMap, path: &str) -> Sender {
    match (is_from_proxy, headers.contains_key(FORWARDED_FOR)) {
        (true, true) => Sender::Named,
        (true, false) if OWN_PATHS.contains(&path) => Sender::Direct,
        (true, false) => Sender::Nameless,
        (false, true) => Sender::Untrusted,
        (false, false) => Sender::Direct,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn senders_are_told_apart() {
        let with = HeaderMap::from_iter([(FORWARDED_FOR, HeaderValue::from_static("192.0.2.1"))]);
        let without = HeaderMap::new();
        // from a proxy, headers, path, sender
        let table = [
            (true, &with, "/a", Sender::Named),
            (true, &with, "/ready", Sender::Named),
            (true, &without, "/a", Sender::Nameless),
            (true, &without, "/ready", Sender::Direct),
            (false, &with, "/a", Sender::Untrusted),
            (false, &without, "/a", Sender::Direct),
        ];
        for (is_from_proxy, headers, path, expected) in table {
            assert_eq!(sender(is_from_proxy, headers, path), expected, "{is_from_proxy} {path}");
        }
    }
}
