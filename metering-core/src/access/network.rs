//! The networks that a key may be used from.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Serialize, Serializer};

/// The most networks that one key may list.
const MAX_NETWORKS: usize = 100;

/// The networks that a key may be used from, in CIDR notation (RFC 4632, RFC 4291). Empty means any.
///
/// ```
/// use metering_core::access::Networks;
///
/// let networks: Networks = "203.0.113.0/24 2001:db8::7".parse()?;
/// assert!(networks.allow("203.0.113.9".parse().ok()));
/// assert!(networks.allow("::ffff:203.0.113.9".parse().ok()), "an IPv4 address in an IPv6 socket");
/// assert!(!networks.allow("198.51.100.1".parse().ok()));
/// assert!(!networks.allow(None), "an address that is not known is in no network");
/// assert_eq!(networks.to_string(), "203.0.113.0/24 2001:db8::7/128");
/// # Ok::<(), metering_core::access::NetworksError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks(Vec<IpNet>);

/// The text is not a list of networks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworksError {
    /// An entry is not an address or network.
    #[error("{0:?} is not an address or a network such as 203.0.113.7 or 2001:db8::/32")]
    Invalid(String),
    /// A network's address has bits that are not of the network.
    #[error("{0} is not the beginning of a network; did you mean {1}, or a single address?")]
    HostBits(String, String),
    /// There are too many.
    #[error("must have at most {MAX_NETWORKS} entries")]
    TooMany,
}

/// A network of IPv4 addresses that is written as one of IPv6 addresses (`::ffff:203.0.113.0/120`) becomes the former,
/// since that is how addresses are compared.
fn canonical(network: IpNet) -> Option<IpNet> {
    match (network, network.addr().to_canonical()) {
        (IpNet::V6(_), address @ IpAddr::V4(_)) => IpNet::new(address, network.prefix_len().checked_sub(96)?).ok(),
        _ => Some(network),
    }
}

impl Networks {
    /// Parses each entry: an address, or a network in CIDR notation.
    ///
    /// # Errors
    /// When one is neither, or there are more than 100.
    pub fn parse<'t>(entries: impl IntoIterator<Item = &'t str>) -> Result<Self, NetworksError> {
        let network = |text: &'t str| {
            let invalid = || NetworksError::Invalid(text.chars().take(60).collect());
            let address = || text.parse::<IpAddr>().map(IpNet::from);
            let network = text.parse::<IpNet>().or_else(|_| address()).map_err(|_| invalid())?;
            if network.trunc() != network {
                return Err(NetworksError::HostBits(network.to_string(), network.trunc().to_string()));
            }
            canonical(network).ok_or_else(invalid)
        };
        let mut networks = entries.into_iter().map(network).collect::<Result<Vec<_>, _>>()?;
        networks.sort_unstable();
        networks.dedup();
        if networks.len() > MAX_NETWORKS { Err(NetworksError::TooMany) } else { Ok(Self(networks)) }
    }

    /// Whether any address is allowed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a request from this address is allowed. If the address is not known, only when any is.
    #[must_use]
    pub fn allow(&self, address: Option<IpAddr>) -> bool {
        let contains = |address: IpAddr| self.0.iter().any(|network| network.contains(&address.to_canonical()));
        self.is_empty() || address.is_some_and(contains)
    }

    /// Whether `other` allows every address that these allow.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let covered = |network: &IpNet| other.0.iter().any(|wider| wider.contains(network));
        other.is_empty() || (!self.is_empty() && self.0.iter().all(covered))
    }
}

impl fmt::Display for Networks {
    /// Separated by spaces, as stores keep them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.iter().map(IpNet::to_string).collect();
        f.write_str(&texts.join(" "))
    }
}

impl FromStr for Networks {
    type Err = NetworksError;

    fn from_str(text: &str) -> Result<Self, NetworksError> {
        Self::parse(text.split([' ', ',']).filter(|entry| !entry.is_empty()))
    }
}

impl Serialize for Networks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(IpNet::to_string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_within_another_when_the_other_allows_all_of_it() {
        let table = [
            ("10.0.0.0/8", "", true),
            ("", "", true),
            ("", "10.0.0.0/8", false),
            ("10.1.2.3", "10.0.0.0/8", true),
            ("10.1.2.3 192.0.2.1", "10.0.0.0/8", false),
            ("10.0.0.0/7", "10.0.0.0/8", false),
            ("2001:db8::/48", "10.0.0.0/8 2001:db8::/32", true),
        ];
        for (list, of, within) in table {
            let (list, of): (Networks, Networks) = (list.parse().unwrap(), of.parse().unwrap());
            assert_eq!(list.is_within(&of), within, "{list} in {of}");
        }
    }

    #[test]
    fn entries_are_checked_and_kept_in_one_form() {
        assert_eq!("10.0.0.0/8,10.0.0.0/8".parse::<Networks>().unwrap().to_string(), "10.0.0.0/8");
        assert_eq!("::ffff:203.0.113.0/120".parse::<Networks>().unwrap().to_string(), "203.0.113.0/24");
        let typo = "10.1.2.3/8".parse::<Networks>().unwrap_err().to_string();
        assert!(typo.contains("10.0.0.0/8"), "{typo}");
        for text in ["10.0.0.0/33", "10.0.0", "localhost", "10.0.0.0/-1"] {
            assert!(matches!(text.parse::<Networks>(), Err(NetworksError::Invalid(_))), "{text}");
        }
        let many: Vec<_> = (0..=100).map(|n| format!("10.0.{n}.0/24")).collect();
        assert_eq!(many.join(" ").parse::<Networks>(), Err(NetworksError::TooMany));
    }
}
