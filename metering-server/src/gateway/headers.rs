//! Decides which headers pass the gateway, in either direction.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use metering_core::AccountId;
use metering_core::catalogue::{Report, is_hop_by_hop, is_same_header};

use crate::gateway::forwarded_header;
use crate::gateway::header_names::{HeaderNames, NOT_FORWARDED, NOT_RETURNED};
use crate::gateway::passed_headers::PassedHeaders;
use crate::gateway::public_address::PublicAddress;
use crate::http::ClientAddress;

/// Tells the upstream which account pays.
pub(crate) const ACCOUNT_HEADER: HeaderName = HeaderName::from_static("x-metering-org-id");

/// How many headers the gateway adds, at most.
const ADDED: usize = 10;

/// The headers to send to the upstream; `host` is its `Host` header, and `public` where the client sent the request.
pub(crate) fn forwarded(
    incoming: &HeaderMap,
    host: HeaderValue,
    public: &PublicAddress<'_>,
    client: Option<&ClientAddress>,
    account: Option<&AccountId>,
    passed: Option<&PassedHeaders>,
) -> HeaderMap {
    let passed = passed.filter(|passed| passed.change_requests());
    let named = named_by_connection(incoming);
    let passes = |name: &HeaderName| {
        !NOT_FORWARDED.contains(name)
            && !is_any_of(&named, name.as_str())
            && passed.is_none_or(|passed| !passed.drops_from_request(name.as_str()))
    };
    let mut headers = HeaderMap::with_capacity(incoming.len() + ADDED);
    // It should come first (RFC 9110, section 7.2).
    headers.insert(header::HOST, host);
    for (name, value) in incoming.iter().filter(|(name, _)| passes(name)) {
        headers.append(name.clone(), value.clone());
    }
    let addresses = client.and_then(|client| client.forwarded_for(incoming));
    let forwarded = client.zip(addresses.as_ref()).and_then(|(client, addresses)| {
        forwarded_header::extended(incoming, client, addresses, public.scheme(), public.authority().as_deref())
    });
    if let Some(addresses) = addresses {
        headers.insert("x-forwarded-for", addresses);
    }
    public.announce(&mut headers);
    if let Some(forwarded) = forwarded {
        headers.insert(header::FORWARDED, forwarded);
    }
    if let Some(account) = account.and_then(|account| HeaderValue::from_str(account.as_str()).ok()) {
        headers.insert(ACCOUNT_HEADER, account);
    }
    for (name, value) in passed.into_iter().flat_map(PassedHeaders::added) {
        headers.insert(name.clone(), value.clone());
    }
    headers
}

/// Request headers that may keep the report out of the body, in any spelling that CGI-style servers read.
const SPOIL_REPORTS: [&str; 6] =
    ["accept-encoding", "range", "if-range", "if-none-match", "if-match", "if-modified-since"];

/// Requests a response whose usage report can be read: with trailers if the report may be there, and unencoded if it is
/// in the body.
pub(crate) fn ask_for_report(headers: &mut HeaderMap, report: &Report) {
    if report.needs_body() {
        // Headers that make the upstream encode the body, or send only a part or none of it.
        let spoils: Vec<_> = headers.keys().filter(|name| is_any_of(&SPOIL_REPORTS, name.as_str())).cloned().collect();
        for name in spoils {
            headers.remove(name);
        }
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    } else {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        // RFC 9110, section 10.1.4.
        headers.insert(header::CONNECTION, HeaderValue::from_static("TE"));
    }
}

/// Removes headers of a response that the client must not get.
pub(crate) fn clean_response(headers: &mut HeaderMap) {
    remove(headers, &NOT_RETURNED);
    headers.reserve(ADDED);
    // One account paid for this response: caches must not serve it to another, unless the upstream allows it.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Removes trailers of a response that the client must not get.
pub(crate) fn clean_trailers(trailers: &mut HeaderMap) {
    remove(trailers, &NOT_RETURNED);
}

/// Removes the headers with these names, and those of the connection. Usually there are none.
fn remove(headers: &mut HeaderMap, names: &HeaderNames) {
    let named = named_by_connection(headers);
    let is_removed = |name: &&HeaderName| names.contains(name) || is_any_of(&named, name.as_str());
    let removed: Vec<HeaderName> = headers.keys().filter(is_removed).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

/// The headers that belong to the connection because `Connection` names them, apart from those that always do.
fn named_by_connection(headers: &HeaderMap) -> Vec<&str> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty() && !is_hop_by_hop(name))
        .collect()
}

fn is_any_of(known: &[&str], name: &str) -> bool {
    known.iter().any(|known| is_same_header(name, known))
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

    /// Where a client without a proxy sent these headers.
    fn public<'a>(incoming: &'a HeaderMap, scheme: &'a str) -> PublicAddress<'a> {
        PublicAddress::find(incoming, None, scheme, None)
    }

    /// The headers that the client gets of a response with these headers.
    fn returned(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = map(pairs);
        clean_response(&mut headers);
        headers
    }

    #[test]
    fn nothing_keeps_the_report_out_of_the_body() {
        let catalogue = metering_core::Catalogue::from_json(
            r#"{"market": "M", "version": 1, "endpoints": [{"path": "/chat", "method": "POST", "metered": true,
                "price": {"max": "0.5", "report": {"json": "/cost"}}}]}"#,
        )
        .unwrap();
        let report = catalogue.routes()[0].usage_price().unwrap().report();
        let mut headers = map(&[
            ("accept-encoding", "gzip"),
            ("accept_encoding", "gzip"),
            ("range", "bytes=1-"),
            ("if-none-match", "*"),
            ("accept", "application/json"),
        ]);
        ask_for_report(&mut headers, report);
        assert_eq!(headers, map(&[("accept", "application/json"), ("accept-encoding", "identity")]));
    }

    #[test]
    fn secrets_and_claims_of_the_client_do_not_reach_the_upstream() {
        let incoming = map(&[
            ("authorization", "Bearer x"),
            ("x-api-key", "x"),
            ("api-key", "x"),
            ("x-goog-api-key", "x"),
            ("cookie", "a=b"),
            ("accept-payment", "evm/charge"),
            ("payment-signature", "x"),
            ("x-payment", "x"),
            ("payment-authorization", "Payment x"),
            ("sign-in-with-x", "x"),
            ("accept-payment", "evm/charge"),
            ("max-cost", "1"),
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
        let headers = forwarded(
            &incoming,
            HeaderValue::from_static("upstream:1"),
            &public(&incoming, "https"),
            Some(&client),
            Some(&account),
            None,
        );
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = [
            "accept",
            "forwarded",
            "host",
            "x-custom",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-port",
            "x-forwarded-proto",
            "x-metering-org-id",
        ];
        assert_eq!(names, expected);
        assert_eq!(headers["host"], "upstream:1");
        assert_eq!(headers["x-forwarded-host"], "meter.example");
        assert_eq!(headers["x-forwarded-for"], "10.0.0.7");
        assert_eq!(headers["x-metering-org-id"], account.as_str());
        assert_eq!(headers.get_all("x-custom").iter().count(), 2);
    }

    #[test]
    fn other_spellings_of_a_dropped_header_are_dropped_too() {
        let incoming = map(&[
            ("x_metering_org_id", "org_forged"),
            ("x_metering-org_id", "org_forged"),
            ("x.metering.org.id", "org_forged"),
            ("x_forwarded_for", "6.6.6.6"),
            ("x_forwarded_proto", "https"),
            ("x_real_ip", "6.6.6.6"),
            ("content_length", "5"),
            ("transfer_encoding", "chunked"),
            ("x_api_key", "sk"),
            ("api_key", "sk"),
            ("x.goog-api_key", "sk"),
            ("x_bds_internal_billing_secret", "x"),
            ("connection", "x_private"),
            ("x-private", "1"),
            ("accept", "*/*"),
            ("x_custom", "1"),
        ]);
        let headers =
            forwarded(&incoming, HeaderValue::from_static("upstream"), &public(&incoming, "http"), None, None, None);
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "host", "x-forwarded-proto", "x_custom"]);
        assert_eq!(headers["x-forwarded-proto"], "http");
    }

    #[test]
    fn headers_that_only_a_proxy_may_set_do_not_reach_the_upstream() {
        let names = [
            "x-original-anything",
            "x_rewrite_anything",
            "x-forwarded-anything",
            "x-envoy-ip",
            "proxy",
            "true-client-ip",
        ];
        for name in names {
            let incoming = map(&[(name, "/v1/export")]);
            let headers = forwarded(
                &incoming,
                HeaderValue::from_static("upstream"),
                &public(&incoming, "http"),
                None,
                None,
                None,
            );
            assert_eq!(
                headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
                ["host", "x-forwarded-proto"],
                "{name}"
            );
        }
    }

    #[test]
    fn the_upstream_sets_neither_cookies_nor_our_own_headers() {
        let headers = returned(&[
            ("set-cookie", "a=b"),
            ("set_cookie", "a=b"),
            ("x-bds-credit-balance", "1000000"),
            ("x_bds_credit_balance", "1000000"),
            ("x-bds-price-version", "1"),
            ("x-bds-request-id", "req_forged"),
            ("metering-receipt", "of another request"),
            ("payment-response", "of another payment"),
            ("ratelimit", "forged"),
            ("transfer-encoding", "chunked"),
            ("content-type", "text/plain"),
            ("etag", "\"1\""),
        ]);
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["cache-control", "content-type", "etag"]);
        assert_eq!(returned(&[("cache-control", "max-age=5")])["cache-control"], "max-age=5");
    }

    #[test]
    fn other_headers_of_a_response_pass_unchanged() {
        let pairs = [
            ("content-type", "text/plain"),
            ("vary", "accept"),
            ("vary", "origin"),
            ("cache-control", "max-age=5"),
            ("cache-control", "private"),
        ];
        let passed = returned(&pairs);
        assert_eq!(passed, map(&pairs));
        assert!(passed.iter().eq(map(&pairs).iter()), "{passed:?}");
        // Values of a header stay in order when others are removed.
        let hop_by_hop = [("set-cookie", "a"), ("x-private", "1"), ("connection", "keep-alive, X_Private")];
        let mut mixed = map(&[hop_by_hop.as_slice(), &pairs, &hop_by_hop].concat());
        assert_eq!(returned(&[hop_by_hop.as_slice(), &pairs, &hop_by_hop].concat()), map(&pairs));
        clean_trailers(&mut mixed);
        assert_eq!(mixed, map(&pairs));
    }

    #[test]
    fn the_usual_options_of_a_connection_name_no_headers() {
        // `Connection`, the headers to drop because of it
        let table: [(&[&str], &[&str]); 5] = [
            (&[], &[]),
            (&["keep-alive"], &[]),
            (&["Keep-Alive, Upgrade", "TE,,"], &[]),
            (&["close"], &["close"]),
            (&["X-Private, keep-alive", " x_other"], &["X-Private", "x_other"]),
        ];
        for (lines, expected) in table {
            let lines = lines.iter().map(|line| (header::CONNECTION, HeaderValue::from_str(line).unwrap()));
            let headers: HeaderMap = lines.collect();
            assert_eq!(named_by_connection(&headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn the_upstream_cannot_act_on_the_whole_origin() {
        let names = [
            "service-worker-allowed",
            "clear-site-data",
            "alt-svc",
            "strict-transport-security",
            "refresh",
            "set-cookie2",
            "nel",
            "report-to",
            "reporting-endpoints",
            "x-accel-redirect",
            "x-sendfile",
        ];
        for name in names {
            let headers = returned(&[(name, "anything")]);
            assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["cache-control"], "{name}");
        }
    }
}
