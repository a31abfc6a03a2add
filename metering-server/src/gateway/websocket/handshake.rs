//! The WebSocket handshake (RFC 6455, section 4) as far as it concerns a gateway. The rest is between the client and
//! the upstream: `Sec-WebSocket-*` passes unchanged.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Version};
use metering_core::Error;
use metering_core::access::KEY_HEADERS;
use metering_core::catalogue::Route;

/// The prefix of a key from a browser: browsers can set no header but `Sec-WebSocket-Protocol`. The clients of OpenAI
/// do so.
const KEY_PREFIX: &str = "openai-insecure-api-key.";

/// The parts of a WebSocket handshake in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedUpgrade {
    /// Nothing: it is an ordinary request. So is one for another protocol, such as `h2c`, which a server may ignore
    /// (RFC 9110, section 7.8).
    Nothing,
    /// An incomplete one, for example from a proxy that does not pass on `Upgrade`.
    Incomplete,
    /// All of one.
    WebSocket,
}

/// Whether a request is a WebSocket handshake.
pub(crate) fn asked(method: &Method, version: Version, headers: &HeaderMap) -> RequestedUpgrade {
    let has_key = headers.contains_key(header::SEC_WEBSOCKET_KEY);
    // RFC 9110, section 7.8: `Upgrade` of HTTP/1.0 is ignored. HTTP/2 has none.
    let upgrades = version == Version::HTTP_11
        && names(headers, header::UPGRADE, "websocket")
        && names(headers, header::CONNECTION, "upgrade");
    match (upgrades, has_key) {
        (true, true) if method == Method::GET => RequestedUpgrade::WebSocket,
        (false, false) => RequestedUpgrade::Nothing,
        _ => RequestedUpgrade::Incomplete,
    }
}

/// Refuses a request before it is charged if its route is of the other kind.
///
/// # Errors
/// [`Error::WebSocketNotSupported`] and [`Error::UpgradeRequired`].
pub(crate) fn check(asked: RequestedUpgrade, route: &Route) -> Result<(), Error> {
    match (route.websocket, asked) {
        (true, RequestedUpgrade::WebSocket) | (false, RequestedUpgrade::Nothing) => Ok(()),
        (true, _) => Err(Error::UpgradeRequired),
        (false, _) => Err(Error::WebSocketNotSupported),
    }
}

/// Refuses a request that a proxy forwards itself. The proxy may have dropped the hop-by-hop headers, so any part of a
/// handshake counts as one.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_proxied(asked: RequestedUpgrade, route: &Route) -> Result<(), Error> {
    check(if asked == RequestedUpgrade::Nothing { asked } else { RequestedUpgrade::WebSocket }, route)
}

/// Takes a key out of the list of subprotocols, so that the upstream does not get it. It becomes a header unless there
/// is one with a key already.
pub(super) fn take_key(head: &mut Parts) {
    let is_key = |protocol: &str| protocol.starts_with(KEY_PREFIX);
    let lines: Vec<_> = head.headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().collect();
    let protocols: Vec<&str> =
        lines.iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).collect();
    let protocols: Vec<&str> = protocols.into_iter().map(str::trim).filter(|protocol| !protocol.is_empty()).collect();
    let keys: Vec<&str> = protocols.iter().filter_map(|protocol| protocol.strip_prefix(KEY_PREFIX)).collect();
    if keys.is_empty() {
        return;
    }
    // Two keys are an ambiguity, as two headers are.
    let keys: Vec<_> = keys.iter().filter_map(|key| HeaderValue::try_from(format!("Bearer {key}")).ok()).collect();
    let others: Vec<_> = protocols.iter().copied().filter(|protocol| !is_key(protocol)).collect();
    let others = HeaderValue::try_from(others.join(", ")).ok().filter(|others| !others.is_empty());
    drop(head.headers.remove(header::SEC_WEBSOCKET_PROTOCOL));
    if let Some(others) = others {
        head.headers.insert(header::SEC_WEBSOCKET_PROTOCOL, others);
    }
    if !head.headers.contains_key(header::AUTHORIZATION)
        && !KEY_HEADERS.iter().any(|name| head.headers.contains_key(*name))
    {
        for mut key in keys {
            key.set_sensitive(true);
            head.headers.append(header::AUTHORIZATION, key);
        }
    }
}

/// Adds the headers that request the switch from the next server, or confirm it to the client.
pub(crate) fn switch(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// Whether the upstream switched to the requested protocol.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    names(headers, header::UPGRADE, "websocket")
}

/// Whether a list in a header has this token, in any case.
fn names(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let lines = headers.get_all(name);
    let mut tokens = lines.iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    tokens.any(|listed| listed.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(lines: &[(&str, &str)]) -> Parts {
        let request =
            lines.iter().fold(http::Request::get("/live"), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn handshakes_are_told_from_other_requests() {
        let key = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let (upgrade, connection) = (("upgrade", "WebSocket"), ("connection", "keep-alive, Upgrade"));
        let table: [(&[(&str, &str)], RequestedUpgrade); 8] = [
            (&[], RequestedUpgrade::Nothing),
            (&[upgrade, connection, key], RequestedUpgrade::WebSocket),
            (&[("upgrade", "h2c, websocket"), connection, key], RequestedUpgrade::WebSocket),
            (&[("upgrade", "h2c"), connection], RequestedUpgrade::Nothing),
            // A proxy dropped the hop-by-hop headers.
            (&[key], RequestedUpgrade::Incomplete),
            (&[upgrade, key], RequestedUpgrade::Incomplete),
            (&[upgrade, connection], RequestedUpgrade::Incomplete),
            (&[upgrade], RequestedUpgrade::Nothing),
        ];
        for (lines, expected) in table {
            let head = request(lines);
            assert_eq!(asked(&head.method, head.version, &head.headers), expected, "{lines:?}");
        }
        let head = request(&[upgrade, connection, key]);
        assert_eq!(asked(&Method::POST, Version::HTTP_11, &head.headers), RequestedUpgrade::Incomplete);
        assert_eq!(asked(&Method::GET, Version::HTTP_10, &head.headers), RequestedUpgrade::Incomplete);
    }

    #[test]
    fn a_key_among_the_subprotocols_becomes_a_header() {
        let with = |protocols: &'static str, others: &[(&'static str, &'static str)]| {
            let lines: Vec<_> = others.iter().copied().chain([("sec-websocket-protocol", protocols)]).collect();
            let mut head = request(&lines);
            take_key(&mut head);
            let all = |name: &str| {
                let lines = head.headers.get_all(name).iter();
                lines.map(|line| line.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" | ")
            };
            assert!(!format!("{:?}", head.headers).contains("sk_live_1"), "{:?}", head.headers);
            (all("sec-websocket-protocol"), all("authorization"))
        };
        let pair = |protocols: &str, keys: &str| (protocols.to_owned(), keys.to_owned());
        let table = [
            ("realtime, chat", pair("realtime, chat", "")),
            (
                "realtime, openai-insecure-api-key.sk_live_1, openai-beta.realtime-v1",
                pair("realtime, openai-beta.realtime-v1", "Bearer sk_live_1"),
            ),
            ("openai-insecure-api-key.sk_live_1", pair("", "Bearer sk_live_1")),
            (
                "openai-insecure-api-key.sk_live_1,openai-insecure-api-key.sk_live_12",
                pair("", "Bearer sk_live_1 | Bearer sk_live_12"),
            ),
        ];
        for (protocols, expected) in table {
            assert_eq!(with(protocols, &[]), expected, "{protocols}");
        }
        let protocols = "a, openai-insecure-api-key.sk_live_1";
        assert_eq!(with(protocols, &[("authorization", "Bearer other")]), pair("a", "Bearer other"));
        assert_eq!(with(protocols, &[("x-api-key", "other")]), pair("a", ""));
    }

    #[test]
    fn each_kind_of_route_takes_its_own_requests() {
        let catalogue = metering_core::Catalogue::from_json(
            r#"{"market": "M", "version": 1, "endpoints": [
                {"path": "/live", "method": "GET", "metered": true, "websocket": true},
                {"path": "/plain", "method": "GET", "metered": true}]}"#,
        )
        .unwrap();
        let code =
            |asked, index: usize| check(asked, &catalogue.routes()[index]).err().map(|error| error.code().status());
        assert_eq!(
            [RequestedUpgrade::WebSocket, RequestedUpgrade::Incomplete, RequestedUpgrade::Nothing]
                .map(|asked| code(asked, 0)),
            [None, Some(426), Some(426)]
        );
        assert_eq!(
            [RequestedUpgrade::WebSocket, RequestedUpgrade::Incomplete, RequestedUpgrade::Nothing]
                .map(|asked| code(asked, 1)),
            [Some(400), Some(400), None]
        );
    }
}
