//! Host names of the local machine: nobody on the network can read the traffic. Said once, since redirects, keys and
//! tokens all depend on it.

use std::net::IpAddr;

/// Whether a host of a URL is the machine itself: `localhost`, or a loopback address.
///
/// ```
/// use metering_core::access::is_own_machine;
///
/// assert!(["localhost", "LocalHost", "127.0.0.1", "127.8.8.8", "[::1]", "::1"].into_iter().all(is_own_machine));
/// let others = ["localhost.evil.example", "127.0.0.1.evil.example", "localhost.", "10.0.0.1", "[::2]", "0.0.0.0", ""];
/// assert!(!others.into_iter().any(is_own_machine));
/// ```
#[must_use]
pub fn is_own_machine(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
