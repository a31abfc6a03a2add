//! Which URLs lead to this machine, where plain HTTP is safe.

use url::{Host, Url};

/// Whether the host is `localhost` or a loopback address.
pub(super) fn is_own_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
