//! Which address a request comes from, proxies in between or not.
//!
//! Anybody can write anything into `X-Forwarded-For`; only what a trusted proxy has added to it is known. Each proxy
//! adds the address that it was called from at the right. So the walk begins at the connection's other end and goes on
//! to the left for as long as it stands on a trusted proxy. An entry that cannot be read cannot be trusted, and ends
//! the walk: the client then is the last address that was read, the nearest one that is known to have taken part.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::TrustedProxies;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Where a request comes from; an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    client: IpAddr,
    peer: IpAddr,
    peer_is_trusted: bool,
}

impl ClientAddress {
    /// Where a request with these headers comes from, when the connection's other end is `peer`.
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

    /// The client's address. IPv4 is always IPv4, never wrapped in IPv6.
    #[must_use]
    pub(crate) fn ip(&self) -> IpAddr {
        self.client
    }

    /// The `X-Forwarded-For` to send on: the connection's other end, after the list that came with the request if that
    /// is a trusted proxy's.
    #[must_use]
    pub(crate) fn forwarded_for(&self, received: &HeaderMap) -> Option<HeaderValue> {
        let mut list = Vec::new();
        if self.peer_is_trusted {
            for line in received.get_all(FORWARDED_FOR).iter().filter(|line| !line.is_empty()) {
                list.extend_from_slice(line.as_bytes());
                list.extend_from_slice(b", ");
            }
        }
        list.extend_from_slice(self.peer.to_string().as_bytes());
        HeaderValue::from_bytes(&list).ok()
    }
}

/// One entry: an address, alone or with a port.
fn read(entry: &[u8]) -> Option<IpAddr> {
    // Not the whole line as text: what a client put into it must not spoil what proxies added.
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
