//! Finds the client address of a request, behind proxies or not.
//!
//! Anyone can write anything into `X-Forwarded-For`; only what trusted proxies appended can be trusted. Each proxy
//! appends the address that called it. So the search starts at the connection's peer and walks the list from right to
//! left as long as the current address is a trusted proxy. An entry that does not parse cannot be trusted and ends the
//! walk. The client is then the last address read: the nearest one that is certainly involved.

use std::io::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::TrustedProxies;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The client address and peer of a request; an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    client: IpAddr,
    peer: IpAddr,
    peer_is_trusted: bool,
}

impl ClientAddress {
    /// Finds the client address of a request with these headers whose connection comes from `peer`.
    #[must_use]
    pub(crate) fn find(peer: IpAddr, headers: &HeaderMap, proxies: &TrustedProxies) -> Self {
        let peer = peer.to_canonical();
        let peer_is_trusted = proxies.contains(peer);
        let mut client = peer;
        if peer_is_trusted {
            let lines: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
            let entries = lines.iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
            for address in entries.map_while(read) {
                client = address;
                if !proxies.contains(address) {
                    break;
                }
            }
        }
        Self { client, peer, peer_is_trusted }
    }

    /// The client's address. IPv4-mapped IPv6 addresses are converted to IPv4.
    #[must_use]
    pub(crate) fn ip(&self) -> IpAddr {
        self.client
    }

    /// Where the connection comes from.
    #[must_use]
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Whether the connection comes from a trusted proxy.
    #[must_use]
    pub(crate) fn is_from_proxy(&self) -> bool {
        self.peer_is_trusted
    }

    /// Whether the client is a trusted proxy itself, so that the real client is unknown.
    #[must_use]
    pub(crate) fn is_proxy(&self) -> bool {
        self.peer_is_trusted && self.client == self.peer
    }

    /// The `X-Forwarded-For` for the upstream: the list received from a trusted proxy, if the peer is one, followed by
    /// the peer.
    #[must_use]
    pub(crate) fn forwarded_for(&self, received: &HeaderMap) -> Option<HeaderValue> {
        // Enough for three hops.
        let mut list = Vec::with_capacity(64);
        if self.peer_is_trusted {
            for line in received.get_all(FORWARDED_FOR).iter().filter(|line| !line.is_empty()) {
                list.extend_from_slice(line.as_bytes());
                list.extend_from_slice(b", ");
            }
        }
        write!(list, "{}", self.peer).ok()?;
        HeaderValue::try_from(list).ok()
    }
}

/// Parses one entry: an address, with or without a port.
fn read(entry: &[u8]) -> Option<IpAddr> {
    // Decode each entry separately: invalid bytes from a client must not invalidate the entries that proxies appended.
    let text = std::str::from_utf8(entry.trim_ascii()).ok()?;
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok();
    let address = text
        .parse()
        .or_else(|_| text.parse::<SocketAddr>().map(|with_port| with_port.ip()))
        .ok()
        .or_else(|| bracketed().map(IpAddr::V6))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests;
