//! The part of an address that identifies one client or one network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The bits of an IPv6 address that name the network (RFC 4291, section 2.5.4). The client chooses the rest freely.
const IPV6_PREFIX_BITS: u32 = 64;
/// The largest block that a provider assigns to one customer (RFC 6177), and the usual size of an IPv4 network.
const IPV6_NETWORK_BITS: u32 = 48;
const IPV4_NETWORK_BITS: u32 = 24;

/// An IPv4 address, or an IPv6 prefix. A client with one address of a /64 usually has all of them, and could use a new
/// one for each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Network(IpAddr);

impl Network {
    /// The client network of an address: a /64 of IPv6, or one IPv4 address.
    #[must_use]
    pub(crate) fn of(address: IpAddr) -> Self {
        Self::prefix(address, u32::BITS, IPV6_PREFIX_BITS)
    }

    /// The wider network around an address, a /48 of IPv6 or a /24 of IPv4. Its addresses may all belong to one
    /// attacker.
    #[must_use]
    pub(crate) fn around(address: IpAddr) -> Self {
        Self::prefix(address, IPV4_NETWORK_BITS, IPV6_NETWORK_BITS)
    }

    fn prefix(address: IpAddr, ipv4_bits: u32, ipv6_bits: u32) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let prefix = address.to_bits() & (u32::MAX << (u32::BITS - ipv4_bits));
                Self(IpAddr::V4(Ipv4Addr::from_bits(prefix)))
            }
            IpAddr::V6(address) => {
                let prefix = address.to_bits() & (u128::MAX << (u128::BITS - ipv6_bits));
                Self(IpAddr::V6(Ipv6Addr::from_bits(prefix)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_client_are_one_network() {
        // one, other, same network
        let table = [
            ("1.2.3.4", "1.2.3.4", true),
            ("1.2.3.4", "::ffff:1.2.3.4", true),
            ("1.2.3.4", "1.2.3.5", false),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
            ("2001:db8:1:2::1", "2001:db9:1:2::1", false),
            ("::1", "0.0.0.1", false),
        ];
        for (one, other, same) in table {
            let network = |text: &str| Network::of(text.parse().unwrap());
            assert_eq!(network(one) == network(other), same, "{one} {other}");
        }
    }
}
