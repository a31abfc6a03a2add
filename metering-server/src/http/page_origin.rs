//! Which page a browser's request comes from: the browser sends that in `Sec-Fetch-Site` (Fetch Metadata) and `Origin`,
//! which no script can set.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request};
use metering_core::access::is_own_machine;

const SITE: &str = "sec-fetch-site";

/// Whether a page of another site or origin sent the request, according to the browser. Older browsers send only
/// `Origin`; programs send neither.
pub(crate) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    match (headers.get(SITE), headers.get(ORIGIN)) {
        (Some(site), _) => !matches!(site.as_bytes(), b"same-origin" | b"none"),
        (None, Some(origin)) => !is_origin_of(origin, host(headers).as_ref()),
        (None, None) => false,
    }
}

/// Whether a request with a cookie comes from a page of the origin that it is sent to. An old browser, which sends
/// neither, can only read.
pub(crate) fn is_from_here<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    if let Some(site) = headers.get(SITE) {
        return site.as_bytes() == b"same-origin";
    }
    let Some(origin) = headers.get(ORIGIN) else { return request.method().is_safe() };
    let own = request.uri().authority().cloned().or_else(|| host(headers));
    is_origin_of(origin, own.as_ref())
}

fn host(headers: &HeaderMap) -> Option<Authority> {
    headers.get(HOST)?.to_str().ok()?.parse().ok()
}

/// Whether a page of this origin is on the host that the request names.
fn is_origin_of(origin: &HeaderValue, own: Option<&Authority>) -> bool {
    let page = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    matches!((own, page), (Some(own), Some((_, page))) if own.as_str().eq_ignore_ascii_case(page))
}

/// Whether the page that sent the request is on the browser's own machine, over plain HTTP.
pub(crate) fn is_plain_and_local(headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let Some(authority) = origin.and_then(|origin| origin.strip_prefix("http://")?.parse::<Authority>().ok()) else {
        return false;
    };
    is_own_machine(authority.host()) || authority.host().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, headers: &[(&str, &str)]) -> Request<()> {
        let request = Request::builder().method(method).uri("/x").header("host", "acme.example");
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(()).unwrap()
    }

    #[test]
    fn a_cookie_counts_from_its_own_pages_only() {
        // method, headers, accepted
        type Row<'a> = (&'a str, &'a [(&'static str, &'static str)], bool);
        let table: [Row<'_>; 11] = [
            ("POST", &[("sec-fetch-site", "same-origin")], true),
            ("GET", &[("sec-fetch-site", "same-origin")], true),
            ("GET", &[("sec-fetch-site", "none")], false),
            ("GET", &[("sec-fetch-site", "same-site")], false),
            ("POST", &[("sec-fetch-site", "cross-site"), ("origin", "https://acme.example")], false),
            ("POST", &[("origin", "https://acme.example")], true),
            ("POST", &[("origin", "https://evil.example")], false),
            ("POST", &[("origin", "https://acme.example.evil.example")], false),
            ("POST", &[("origin", "null")], false),
            ("POST", &[], false),
            ("GET", &[], true),
        ];
        for (method, headers, expected) in table {
            assert_eq!(is_from_here(&request(method, headers)), expected, "{method} {headers:?}");
        }
    }

    #[test]
    fn signing_in_is_refused_to_pages_of_other_sites() {
        for (site, refused) in [("same-origin", false), ("none", false), ("same-site", true), ("cross-site", true)] {
            let request = request("POST", &[("sec-fetch-site", site)]);
            assert_eq!(is_from_elsewhere(request.headers()), refused, "{site}");
        }
        // Browsers that do not send it.
        for (origin, refused) in [("https://acme.example", false), ("https://evil.example", true), ("null", true)] {
            let request = request("POST", &[("origin", origin)]);
            assert_eq!(is_from_elsewhere(request.headers()), refused, "{origin}");
        }
        assert!(!is_from_elsewhere(request("POST", &[]).headers()), "programs say nothing");
    }

    #[test]
    fn own_machines_are_told_by_their_names() {
        let table = [
            ("http://localhost:8787", true),
            ("http://account.localhost:8787", true),
            ("http://127.0.0.1:8787", true),
            ("http://[::1]:8787", true),
            ("https://localhost", false),
            ("http://acme.example", false),
            ("http://10.0.0.5", false),
            ("http://localhost.evil.example", false),
            ("null", false),
        ];
        for (origin, expected) in table {
            assert_eq!(is_plain_and_local(request("POST", &[("origin", origin)]).headers()), expected, "{origin}");
        }
    }
}
