//! Which addresses webhooks of customers may be sent to.
//!
//! The networks are those of the IANA special-purpose address registries (RFC 6890, as of November 2026) that are not
//! globally reachable. Protocol anycast addresses within them, such as 192.0.0.9, are refused too: no webhook receiver
//! uses them. When in doubt, an address is not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// IPv4 networks that are not public.
const NOT_PUBLIC_V4: [Ipv4Net; 17] = [
    v4([0, 0, 0, 0], 8),          // "this network" (RFC 791)
    v4([10, 0, 0, 0], 8),         // private (RFC 1918)
    v4([100, 64, 0, 0], 10),      // shared address space behind carrier-grade NAT (RFC 6598)
    v4([127, 0, 0, 0], 8),        // loopback (RFC 1122)
    v4([168, 63, 129, 16], 32),   // Azure's platform services, at an address that is public elsewhere
    v4([169, 254, 0, 0], 16),     // link-local (RFC 3927), and metadata services of clouds
    v4([172, 16, 0, 0], 12),      // private (RFC 1918)
    v4([192, 0, 0, 0], 24),       // IETF protocol assignments (RFC 6890)
    v4([192, 0, 2, 0], 24),       // documentation (RFC 5737)
    v4([192, 88, 99, 0], 24),     // 6to4 relays (RFC 7526)
    v4([192, 168, 0, 0], 16),     // private (RFC 1918)
    v4([198, 18, 0, 0], 15),      // benchmarking (RFC 2544)
    v4([198, 51, 100, 0], 24),    // documentation (RFC 5737)
    v4([203, 0, 113, 0], 24),     // documentation (RFC 5737)
    v4([224, 0, 0, 0], 4),        // multicast (RFC 1112)
    v4([240, 0, 0, 0], 4),        // reserved (RFC 1112)
    v4([255, 255, 255, 255], 32), // limited broadcast (RFC 919)
];

/// The only network of which IANA has allocated global unicast addresses. Everything outside it is refused: loopback
/// (`::1`), IPv4-compatible (`::/96`), discard (`100::/64`), segment routing (`5f00::/16`), unique local (`fc00::/7`),
/// link-local (`fe80::/10`), site-local (`fec0::/10`), multicast (`ff00::/8`), and local NAT64 (`64:ff9b:1::/48`).
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0], 3);

/// IPv6 networks within global unicast that are not public.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0], 23), // IETF protocol assignments (RFC 2928), with Teredo, benchmarking and ORCHID
    v6([0x2001, 0xdb8, 0], 32), // documentation (RFC 3849)
    v6([0x2002, 0, 0], 16), // 6to4 (RFC 3056), which tunnels to any IPv4 address
    v6([0x3fff, 0, 0], 20), // documentation (RFC 9637)
];

/// NAT64 (RFC 6052): the last 32 bits are the IPv4 address that packets go to.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0], 96);

/// Metadata and platform services of clouds. They give credentials to any client, so webhooks never reach them, even
/// within a network that the operator allows.
const METADATA: [IpNet; 6] = [
    IpNet::V4(v4([100, 100, 100, 200], 32)), // Alibaba Cloud
    IpNet::V4(v4([168, 63, 129, 16], 32)),   // Azure
    IpNet::V4(v4([169, 254, 0, 0], 16)),     // nearly all clouds
    IpNet::V4(v4([192, 0, 0, 192], 32)),     // Oracle Cloud
    IpNet::V6(v6([0xfd00, 0xec2, 0], 32)),   // AWS
    IpNet::V6(v6([0xfd20, 0xce, 0], 32)),    // Google Cloud
];

const fn v4(address: [u8; 4], prefix: u8) -> Ipv4Net {
    let [a, b, c, d] = address;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(first: [u16; 3], prefix: u8) -> Ipv6Net {
    let [a, b, c] = first;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// The address that packets end up at, if it can be read from this one: IPv4-mapped addresses and NAT64.
fn effective(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if NAT64.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        canonical => canonical,
    }
}

/// Whether the address is globally reachable, and not part of an internal network.
///
/// IPv6 addresses with an IPv4 address in them (IPv4-mapped, NAT64) are as public as that; 6to4 and Teredo never are.
///
/// ```
/// use metering_core::events::is_public;
///
/// for (address, public) in [
///     ("93.184.216.34", true),
///     ("2606:4700::6810:84e5", true),
///     ("64:ff9b::5db8:d822", true),
///     ("169.254.169.254", false),
///     ("::ffff:10.0.0.1", false),
/// ] {
///     assert_eq!(is_public(address.parse()?), public, "{address}");
/// }
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match effective(address) {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.iter().any(|network| network.contains(&v4)),
        IpAddr::V6(v6) => GLOBAL_UNICAST.contains(&v6) && !NOT_PUBLIC_V6.iter().any(|network| network.contains(&v6)),
    }
}

/// Which addresses webhooks of customers may be sent to: public ones, and the networks that the operator allows in
/// addition, such as those of an intranet.
///
/// ```
/// use metering_core::events::AddressPolicy;
///
/// let policy = AddressPolicy::with_networks(vec!["10.0.0.0/8".parse()?]);
/// assert!(policy.allows("10.1.2.3".parse()?));
/// assert!(!AddressPolicy::default().allows("10.1.2.3".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressPolicy {
    networks: Vec<IpNet>,
}

impl AddressPolicy {
    /// Allows public addresses and addresses of `networks`. Metadata services of clouds are always refused. Write IPv4
    /// networks as IPv4: one in IPv6 notation (`::ffff:10.0.0.0/104`) has no effect.
    #[must_use]
    pub const fn with_networks(networks: Vec<IpNet>) -> Self {
        Self { networks }
    }

    /// Whether a webhook may be sent to this address.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        let effective = effective(address);
        let within = |networks: &[IpNet]| networks.iter().any(|network| network.contains(&effective));
        is_public(effective) || (within(&self.networks) && !within(&METADATA))
    }

    /// Whether no address but public ones is allowed.
    pub(crate) const fn is_public_only(&self) -> bool {
        self.networks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Networks of the registries and others that are refused. The addresses next to each are public, unless they are
    /// in another of these networks, or outside of what IPv6 has allocated.
    const REFUSED: [&str; 35] = [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "255.255.255.255/32",
        "::/128",
        "::1/128",
        "::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "100:0:0:1::/64",
        "2001::/23",
        "2001::/32",
        "2001:2::/48",
        "2001:10::/28",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    ];

    fn number(address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(v4) => v4.to_bits().into(),
            IpAddr::V6(v6) => v6.to_bits(),
        }
    }

    /// The addresses just before and just after a network.
    fn neighbours(network: IpNet) -> Vec<IpAddr> {
        let before = number(network.network()).checked_sub(1);
        let after = number(network.broadcast()).checked_add(1);
        let address = |number: u128| match network {
            IpNet::V4(_) => u32::try_from(number).ok().map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
            IpNet::V6(_) => Some(IpAddr::V6(Ipv6Addr::from_bits(number))),
        };
        [before, after].into_iter().flatten().filter_map(address).collect()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn special_networks_are_refused_to_their_edges() {
        let networks = REFUSED.map(|text| text.parse::<IpNet>().unwrap());
        let mut public_edges = Vec::new();
        for network in networks {
            let middle = number(network.network()).midpoint(number(network.broadcast()));
            let middle = match network {
                IpNet::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(middle).unwrap())),
                IpNet::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(middle)),
            };
            for address in [network.network(), middle, network.broadcast()] {
                assert!(!is_public(address), "{address} of {network}");
            }
            for neighbour in neighbours(network) {
                let special = networks.iter().any(|network| network.contains(&neighbour));
                let allocated = neighbour.is_ipv4() || "2000::/3".parse::<IpNet>().unwrap().contains(&neighbour);
                assert_eq!(is_public(neighbour), !special && allocated, "{neighbour} next to {network}");
                public_edges.extend(is_public(neighbour).then_some(neighbour));
            }
        }
        let text = public_edges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(
            text,
            "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 \
             168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 \
             192.0.1.255 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 \
             198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 \
             2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:200:: 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
             2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: 2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003:: \
             3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::"
        );
    }

    #[test]
    fn only_allocated_ipv6_addresses_are_public() {
        let table = [
            ("1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false),
            ("2000::", true),
            ("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true),
            ("4000::", false),
            ("8000::", false),
            ("2606:4700::6810:84e5", true),
        ];
        for (address, public) in table {
            assert_eq!(is_public(ip(address)), public, "{address}");
        }
    }

    #[test]
    fn an_ipv4_address_within_an_ipv6_address_decides() {
        for (v4, public) in [
            ("93.184.216.34", true),
            ("10.0.0.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
            ("255.255.255.255", false),
        ] {
            for prefix in ["::ffff:", "64:ff9b::"] {
                assert_eq!(is_public(ip(&format!("{prefix}{v4}"))), public, "{prefix}{v4}");
            }
            // IPv4-compatible and IPv4-translated addresses, and other prefixes of NAT64.
            for prefix in ["::", "::ffff:0:", "64:ff9b:1::", "64:ff9b:0:0:0:1:"] {
                assert!(!is_public(ip(&format!("{prefix}{v4}"))), "{prefix}{v4}");
            }
        }
        // 6to4 and Teredo tunnel to the IPv4 address in them.
        for tunnel in ["2002:5db8:d822::1", "2002:7f00:1::1", "2001:0:5db8:d822::1", "2001::1"] {
            assert!(!is_public(ip(tunnel)), "{tunnel}");
        }
    }

    #[test]
    fn operators_allow_networks_but_never_metadata_services() {
        let everything = AddressPolicy::with_networks(vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()]);
        let intranet =
            AddressPolicy::with_networks(vec!["10.0.0.0/8".parse().unwrap(), "fd12:3456::/32".parse().unwrap()]);
        // address, allowed by default, with an intranet, with everything
        let table = [
            ("93.184.216.34", true, true, true),
            ("10.255.255.255", false, true, true),
            ("::ffff:10.0.0.0", false, true, true),
            ("64:ff9b::a00:1", false, true, true),
            ("11.0.0.0", true, true, true),
            ("192.168.0.1", false, false, true),
            ("127.0.0.1", false, false, true),
            ("::1", false, false, true),
            ("fd12:3456:ffff::1", false, true, true),
            ("fd12:3457::1", false, false, true),
            ("169.254.169.254", false, false, false),
            ("169.254.170.2", false, false, false),
            ("::ffff:169.254.169.254", false, false, false),
            ("64:ff9b::a9fe:a9fe", false, false, false),
            ("100.100.100.200", false, false, false),
            ("168.63.129.16", false, false, false),
            ("192.0.0.192", false, false, false),
            ("fd00:ec2::254", false, false, false),
            ("fd20:ce::254", false, false, false),
        ];
        for (address, by_default, with_intranet, with_everything) in table {
            assert_eq!(AddressPolicy::default().allows(ip(address)), by_default, "{address} by default");
            assert_eq!(intranet.allows(ip(address)), with_intranet, "{address} with an intranet");
            assert_eq!(everything.allows(ip(address)), with_everything, "{address} with everything");
        }
    }
}
