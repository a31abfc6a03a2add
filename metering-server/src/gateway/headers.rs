//! Which headers pass the gateway, in either direction.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use metering_core::AccountId;

use crate::http::ClientAddress;

/// The account that pays, told to the upstream.
const ACCOUNT_HEADER: HeaderName = HeaderName::from_static("x-metering-org-id");

/// Headers that are about one connection (RFC 9110, section 7.6.1), and their relatives.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// What a client must not tell the upstream: its key, and what only the gateway can know.
const NOT_FORWARDED: [HeaderName; 9] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::HOST,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::FORWARDED,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-bds-internal-billing-secret"),
];

/// What the upstream must not tell the client: cookies of its own for this origin.
const NOT_RETURNED: [HeaderName; 2] = [header::SET_COOKIE, HeaderName::from_static("set-cookie2")];

/// Prefixes of headers that only the gateway may set, in either direction.
const OWN_PREFIXES: [&str; 4] = ["x-metering-", "x-forwarded-", "x-bds-credit-", "ratelimit"];

/// The headers to send upstream.
pub(crate) fn forwarded(
    incoming: &HeaderMap,
    client: Option<&ClientAddress>,
    account: Option<&AccountId>,
) -> HeaderMap {
    let mut headers = passing(incoming, &NOT_FORWARDED);
    if let Some(chain) = client.and_then(|client| client.forwarded_for(incoming)) {
        headers.insert("x-forwarded-for", chain);
    }
    if let Some(host) = incoming.get(header::HOST) {
        headers.insert("x-forwarded-host", host.clone());
    }
    headers.insert("x-forwarded-proto", HeaderValue::from_static("http"));
    if let Some(account) = account.and_then(|account| HeaderValue::from_str(account.as_str()).ok()) {
        headers.insert(ACCOUNT_HEADER, account);
    }
    headers
}

/// The headers to send back.
pub(crate) fn returned(upstream: &HeaderMap) -> HeaderMap {
    let mut headers = passing(upstream, &NOT_RETURNED);
    // Each answer was paid for by one account: none may be kept for another unless the upstream says so itself.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers
}

fn passing(incoming: &HeaderMap, stopped: &[HeaderName]) -> HeaderMap {
    let named_by_connection: Vec<HeaderName> = incoming
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let passes = |name: &HeaderName| {
        !HOP_BY_HOP.contains(name)
            && !stopped.contains(name)
            && !named_by_connection.contains(name)
            && !OWN_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix))
    };
    let mut headers = HeaderMap::with_capacity(incoming.len());
    for (name, value) in incoming.iter().filter(|(name, _)| passes(name)) {
        headers.append(name.clone(), value.clone());
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TrustedProxies;
    use metering_core::SystemRandomness;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn secrets_and_claims_of_the_client_do_not_reach_the_upstream() {
        let incoming = map(&[
            ("authorization", "Bearer x"),
            ("x-api-key", "x"),
            ("cookie", "a=b"),
            ("connection", "close, X-Private"),
            ("x-private", "1"),
            ("te", "trailers"),
            ("host", "meter.example"),
            ("x-forwarded-for", "6.6.6.6"),
            ("x-metering-org-id", "org_forged"),
            ("x-bds-internal-billing-secret", "x"),
            ("accept", "application/json"),
            ("x-custom", "1"),
            ("x-custom", "2"),
        ]);
        let account = AccountId::generate(&SystemRandomness);
        let client = ClientAddress::find([10, 0, 0, 7].into(), &incoming, &TrustedProxies::default());
        let headers = forwarded(&incoming, Some(&client), Some(&account));
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected =
            ["accept", "x-custom", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-metering-org-id"];
        assert_eq!(names, expected);
        assert_eq!(headers["x-forwarded-for"], "10.0.0.7");
        assert_eq!(headers["x-metering-org-id"], account.as_str());
        assert_eq!(headers.get_all("x-custom").iter().count(), 2);
    }

    #[test]
    fn the_upstream_sets_neither_cookies_nor_our_own_headers() {
        let headers = returned(&map(&[
            ("set-cookie", "a=b"),
            ("x-bds-credit-balance", "1000000"),
            ("ratelimit", "forged"),
            ("transfer-encoding", "chunked"),
            ("content-type", "text/plain"),
            ("etag", "\"1\""),
        ]));
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["cache-control", "content-type", "etag"]);
        assert_eq!(returned(&map(&[("cache-control", "max-age=5")]))["cache-control"], "max-age=5");
    }
}
