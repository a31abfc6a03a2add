//! Request headers that make some servers run a different request from the one in the request line.
//!
//! The price depends on the request line. A header such as `X-HTTP-Method-Override` or `X-Original-URL` could make the
//! server behind the gateway run a more expensive request, so the layer drops these headers.

/// Headers that replace the method, path or host of a request in some framework or proxy.
const OVERRIDES: [&str; 37] = [
    // The method: Rails, Symfony, Laravel, Express, ASP.NET and WCF.
    "http-method-override",
    "method-override",
    "x-forwarded-method",
    "x-http-method",
    "x-http-method-override",
    "x-method",
    "x-method-override",
    "x-original-method",
    "x-override-method",
    // The path: IIS and Symfony, Envoy, nginx and Traefik conventions, gunicorn and other WSGI servers.
    "base-url",
    "path-info",
    "request-uri",
    "script-name",
    "x-envoy-original-path",
    "x-forwarded-path",
    "x-forwarded-prefix",
    "x-forwarded-uri",
    "x-forwarded-url",
    "x-http-destinationurl",
    "x-http-path-override",
    "x-original-path",
    "x-original-uri",
    "x-original-url",
    "x-override-url",
    "x-path-info",
    "x-proxy-url",
    "x-request-uri",
    "x-request-url",
    "x-rewrite-uri",
    "x-rewrite-url",
    "x-script-name",
    "x-waws-unencoded-url",
    // The virtual host.
    "x-envoy-original-host",
    "x-host",
    "x-http-host-override",
    "x-original-host",
    "x-proxy-host",
];

/// The letters that [`OVERRIDES`] start with, as bits: few other headers start with one of them.
const FIRST_LETTERS: u32 = {
    let (mut letters, mut at) = (0_u32, 0);
    while at < OVERRIDES.len() {
        letters |= 1_u32 << (OVERRIDES[at].as_bytes()[0] - b'a');
        at += 1;
    }
    letters
};

/// Headers of a single connection (RFC 9110, section 7.6.1), and similar ones.
pub const HOP_BY_HOP_HEADERS: [&str; 10] = [
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Prefixes of headers that only the gateway may set, in either direction.
pub const GATEWAY_HEADER_PREFIXES: [&str; 7] =
    ["x-metering-", "x-forwarded-", "x-bds-credit-", "x-bds-price-", "x-bds-request-", "ratelimit", "metering-receipt"];

/// Whether the header belongs to a single connection, so a proxy does not pass it on.
///
/// ```
/// use metering_core::catalogue::is_hop_by_hop;
///
/// assert!(is_hop_by_hop("Transfer_Encoding"));
/// assert!(!is_hop_by_hop("accept"));
/// ```
#[must_use]
pub fn is_hop_by_hop(header: &str) -> bool {
    HOP_BY_HOP_HEADERS.iter().any(|known| is_same_header(header, known))
}

/// Whether only the gateway may set the header: its data about the request for the upstream, and about the charge for
/// the client.
///
/// ```
/// use metering_core::catalogue::is_of_gateway;
///
/// assert!(is_of_gateway("X_Metering_Org_Id"));
/// assert!(!is_of_gateway("x-request-id"));
/// ```
#[must_use]
pub fn is_of_gateway(header: &str) -> bool {
    GATEWAY_HEADER_PREFIXES.iter().any(|prefix| starts_like_header(header, prefix))
}

/// Whether some server lets this header replace the method, path or host of its request.
///
/// ```
/// use metering_core::catalogue::overrides_request;
///
/// assert!(overrides_request("X-HTTP-Method-Override"));
/// assert!(overrides_request("x_original_url"));
/// assert!(!overrides_request("accept"));
/// ```
#[must_use]
pub fn overrides_request(header: &str) -> bool {
    let first = header.as_bytes().first().map(u8::to_ascii_lowercase);
    let is_first = |byte: u8| byte.is_ascii_lowercase() && FIRST_LETTERS & (1_u32 << (byte - b'a')) != 0;
    first.is_some_and(is_first) && OVERRIDES.iter().any(|known| is_same_header(header, known))
}

/// Whether CGI-style servers read two header names as the same variable.
///
/// They turn both `X-Real-IP` and `X_Real_IP` into `HTTP_X_REAL_IP`. Some also turn every other character that is not
/// a letter or digit into an underscore.
///
/// ```
/// use metering_core::catalogue::is_same_header;
///
/// assert!(is_same_header("X_Real.IP", "x-real-ip"));
/// assert!(!is_same_header("x-real-ip-2", "x-real-ip"));
/// ```
#[must_use]
pub fn is_same_header(header: &str, known: &str) -> bool {
    header.len() == known.len() && starts_like_header(header, known)
}

/// Whether CGI-style servers read the header's name as one that starts with `prefix`.
///
/// ```
/// use metering_core::catalogue::starts_like_header;
///
/// assert!(starts_like_header("X_Forwarded_For", "x-forwarded-"));
/// assert!(!starts_like_header("forwarded", "x-forwarded-"));
/// ```
#[must_use]
pub fn starts_like_header(header: &str, prefix: &str) -> bool {
    let folded = |byte: u8| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' };
    header.len() >= prefix.len() && header.bytes().zip(prefix.bytes()).all(|(a, b)| folded(a) == folded(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_cgi_variables() {
        // header, dropped
        let table = [
            ("x-http-method-override", true),
            ("X_HTTP_METHOD_OVERRIDE", true),
            ("x-http_method.override", true),
            ("x_rewrite_url", true),
            ("SCRIPT_NAME", true),
            ("path-info", true),
            ("x-http-method-overrides", false),
            ("xhttpmethodoverride", false),
            ("accept", false),
            ("content-type", false),
            ("x-request-id", false),
            ("-host", false),
            ("", false),
        ];
        for (header, dropped) in table {
            assert_eq!(overrides_request(header), dropped, "{header}");
        }
        for name in OVERRIDES {
            assert!(overrides_request(name) && overrides_request(&name.to_uppercase().replace('-', "_")), "{name}");
        }
        assert!(starts_like_header("X_Forwarded_For", "x-forwarded-"));
        assert!(!starts_like_header("x-forwarded", "x-forwarded-"));
    }
}
