//! Which header names do not pass the gateway, in either direction.
//!
//! Names are compared as CGI-style servers read them, so `X_Real.IP` is `x-real-ip`. There are many names to compare
//! with, for every header of every request and response, so a name is normalised once and then looked up.

use std::sync::LazyLock;

use http::header::HeaderName;
use metering_core::access::KEY_HEADERS;
use metering_core::catalogue::{GATEWAY_HEADER_PREFIXES, HOP_BY_HOP_HEADERS};

/// Tells the client which upstream served its request.
pub(crate) const UPSTREAM_HEADER: HeaderName = HeaderName::from_static("x-metering-upstream");

/// Headers that a client must not send to the upstream: its payment, and information that only a proxy in front of the
/// upstream has. The layer has dropped the headers that change which request the upstream runs.
const OF_CLIENT: [&str; 31] = [
    "accept-payment",
    "authorization",
    "cf-connecting-ip",
    "client-ip",
    "content-length",
    "cookie",
    "cookie2",
    "expect",
    "fastly-client-ip",
    "forwarded",
    "front-end-https",
    "host",
    "https",
    "max-cost",
    "payment-authorization",
    "payment-signature",
    // CGI programs would use it as their HTTP proxy (httpoxy, CVE-2016-5385).
    "proxy",
    "remote-addr",
    "remote-user",
    "sign-in-with-x",
    "true-client-ip",
    "x-bds-internal-billing-secret",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-originating-ip",
    "x-payment",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-remote-user",
    "x-scheme",
];

/// Prefixes of further headers that a client must not send to the upstream.
const OF_PROXIES: [&str; 4] = ["x-envoy-", "x-forward", "x-original-", "x-rewrite-"];

/// Headers that the upstream must not send to the client: those that a browser applies to the whole origin or host or
/// remembers for later requests, and instructions to a proxy in front of this service.
const OF_ORIGIN: [&str; 20] = [
    "accept-ch",
    "alt-svc",
    "alternates",
    "clear-site-data",
    "critical-ch",
    "expect-ct",
    "nel",
    "origin-agent-cluster",
    "public-key-pins",
    "public-key-pins-report-only",
    "refresh",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "set-cookie",
    "set-cookie2",
    "set-login",
    "strict-transport-security",
    "x-accel-redirect",
    "x-sendfile",
];

/// Receipts of payments, which only this service gives.
const RECEIPTS: [&str; 3] = ["payment-receipt", "payment-response", "x-payment-response"];

/// The longest name that may be listed, in bytes. Prefixes are no longer than this, so the rest of a longer name does not
/// matter.
const LONGEST: usize = 32;

/// Headers of a client that are not forwarded.
pub(crate) static NOT_FORWARDED: LazyLock<HeaderNames> = LazyLock::new(|| {
    HeaderNames::new(&[&HOP_BY_HOP_HEADERS, &KEY_HEADERS, &OF_CLIENT], &[&GATEWAY_HEADER_PREFIXES, &OF_PROXIES])
});

/// Headers and trailers of the upstream that the client does not get.
pub(crate) static NOT_RETURNED: LazyLock<HeaderNames> =
    LazyLock::new(|| HeaderNames::new(&[&HOP_BY_HOP_HEADERS, &OF_ORIGIN, &RECEIPTS], &[&GATEWAY_HEADER_PREFIXES]));

/// Names of headers, and prefixes of names.
#[derive(Debug)]
pub(crate) struct HeaderNames {
    /// The names of each length.
    by_length: [Vec<&'static str>; LONGEST + 1],
    prefixes: Vec<&'static str>,
}

impl HeaderNames {
    /// Lists of names and of prefixes, in lower case and with no other punctuation than `-`.
    fn new(names: &[&[&'static str]], prefixes: &[&[&'static str]]) -> Self {
        let mut by_length: [Vec<&'static str>; LONGEST + 1] = [const { Vec::new() }; LONGEST + 1];
        for name in names.iter().copied().flatten().copied() {
            by_length[name.len()].push(name);
        }
        Self { by_length, prefixes: prefixes.iter().copied().flatten().copied().collect() }
    }

    /// Whether a CGI-style server reads the header as one of these.
    pub(crate) fn contains(&self, name: &HeaderName) -> bool {
        let name = name.as_str().as_bytes();
        let mut buffer = [0; LONGEST];
        let normal = normalised(name, &mut buffer);
        let of_length = self.by_length.get(name.len());
        of_length.into_iter().flatten().any(|known| known.as_bytes() == normal)
            || self.prefixes.iter().map(|prefix| prefix.as_bytes()).any(|prefix| {
                // Most names differ in their first byte, which is cheaper than comparing slices.
                normal.first() == prefix.first() && normal.starts_with(prefix)
            })
    }
}

/// The first [`LONGEST`] bytes of a name, in the form of the lists. A [`HeaderName`] is in lower case already.
fn normalised<'b>(name: &[u8], buffer: &'b mut [u8; LONGEST]) -> &'b [u8] {
    for (normal, byte) in buffer.iter_mut().zip(name) {
        *normal = if byte.is_ascii_alphanumeric() { *byte } else { b'-' };
    }
    &buffer[..name.len().min(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(names: &HeaderNames, name: &str) -> bool {
        names.contains(&name.parse().unwrap())
    }

    fn spellings(name: &str) -> [String; 4] {
        let upper = name.to_ascii_uppercase();
        [name.to_owned(), name.replace('-', "_"), name.replace('-', "."), upper.replacen('-', "~", 1)]
    }

    #[test]
    fn every_listed_name_is_found_in_all_spellings() {
        let lists = [(&*NOT_FORWARDED, 10 + 3 + 31, 7 + 4), (&*NOT_RETURNED, 10 + 20 + 3, 7)];
        for (list, names, prefixes) in lists {
            let listed: Vec<_> = list.by_length.iter().flatten().copied().collect();
            assert_eq!((listed.len(), list.prefixes.len()), (names, prefixes));
            for name in listed {
                assert!(spellings(name).iter().all(|spelling| contains(list, spelling)), "{name}");
                assert!(!contains(list, &format!("{name}z")) && !contains(list, &format!("z{name}")), "{name}");
            }
            for prefix in &list.prefixes {
                for spelling in spellings(prefix) {
                    assert!(contains(list, &spelling) && contains(list, &format!("{spelling}z")), "{spelling}");
                    assert!(!contains(list, &format!("z{spelling}")), "{spelling}");
                }
            }
        }
    }

    #[test]
    fn other_names_and_long_ones_are_looked_up_too() {
        let long = "z".repeat(200);
        let [of_gateway, of_proxy, of_none] =
            ["x_forwarded_", "x-original-", "x-bds-internal-billing-secret"].map(|start| format!("{start}{long}"));
        // name, not forwarded, not returned
        let table: [(&str, bool, bool); 10] = [
            ("accept", false, false),
            ("content-type", false, false),
            ("x-request-id", false, false),
            ("x", false, false),
            ("content-length", true, false),
            ("set-cookie", false, true),
            (&long, false, false),
            (&of_gateway, true, true),
            (&of_proxy, true, false),
            (&of_none, false, false),
        ];
        for (name, not_forwarded, not_returned) in table {
            assert_eq!(contains(&NOT_FORWARDED, name), not_forwarded, "{name}");
            assert_eq!(contains(&NOT_RETURNED, name), not_returned, "{name}");
        }
    }
}
