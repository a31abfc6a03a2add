//! Trusted proxies, whose `X-Forwarded-For` determines the client address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

use crate::server::List;
use crate::server::text::as_text;

/// Addresses and networks, such as `127.0.0.1, 10.0.0.0/8, fd00::/8`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrustedProxies(List<Network>);

impl TrustedProxies {
    /// Whether no proxy is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `address` is a trusted proxy. IPv4-mapped IPv6 addresses match IPv4 networks and the other way round.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|Network(network)| network.contains(&address))
    }
}

/// A network in CIDR notation; a single address is a network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(pub(super) IpNet);

/// The text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IP address or a network such as 10.0.0.0/8")]
pub struct NetworkError(String);

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let network = match text.parse::<IpAddr>() {
            Ok(address) => IpNet::from(address),
            Err(_) => text.parse().map_err(|_| NetworkError(text.to_owned()))?,
        };
        Ok(Self(unmapped(network).trunc()))
    }
}

/// Converts IPv4-mapped networks (`::ffff:10.0.0.0/104`) to IPv4.
fn unmapped(network: IpNet) -> IpNet {
    let IpNet::V6(mapped) = network else { return network };
    let length = mapped.prefix_len().checked_sub(96);
    let ipv4 = mapped.addr().to_ipv4_mapped().zip(length).and_then(|(addr, length)| Ipv4Net::new(addr, length).ok());
    ipv4.map_or(network, IpNet::V4)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_text!(Network);

impl FromIterator<Network> for TrustedProxies {
    fn from_iter<I: IntoIterator<Item = Network>>(networks: I) -> Self {
        Self(networks.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_exactly_their_addresses() {
        // network, normal form, an address inside, an address outside
        let table = [
            ("127.0.0.1", "127.0.0.1/32", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.1", "127.0.0.1/32", "::ffff:127.0.0.1", "::1"),
            ("10.0.0.0/8", "10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("10.1.2.3/8", "10.0.0.0/8", "10.9.9.9", "9.255.255.255"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8", "10.0.0.1", "11.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1/32", "::ffff:10.0.0.1", "10.0.0.2"),
            ("fd00::/8", "fd00::/8", "fd12::1", "fe80::1"),
            ("::1", "::1/128", "::1", "127.0.0.1"),
            ("0.0.0.0/0", "0.0.0.0/0", "8.8.8.8", "2001:db8::1"),
            ("::/0", "::/0", "2001:db8::1", "8.8.8.8"),
        ];
        for (text, form, inside, outside) in table {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), form);
            let proxies = TrustedProxies::from_iter([text.parse::<Network>().unwrap()]);
            assert!(proxies.contains(inside.parse().unwrap()), "{inside} is in {text}");
            assert!(!proxies.contains(outside.parse().unwrap()), "{outside} is not in {text}");
        }
        assert!(!TrustedProxies::default().contains(IpAddr::from([127, 0, 0, 1])), "no proxy is trusted by default");
    }

    #[test]
    fn invalid_networks_are_rejected() {
        for text in ["", "localhost", "*", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.1:80", "[::1]", "10.0.0.0/"] {
            assert_eq!(text.parse::<Network>(), Err(NetworkError(text.to_owned())), "{text}");
        }
    }
}
