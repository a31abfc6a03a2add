//! [`Privacy`]: keeps responses that belong to one client out of caches that others share.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::received::{Received, is_credential};
use crate::wire::{
    BALANCE_HEADER, PAYMENT_RECEIPT_HEADER, PAYMENT_RESPONSE_HEADER, TARGETED_CACHE_HEADERS, TARGETED_SUFFIX,
    X_PAYMENT_RESPONSE_HEADER, private_cache_control,
};

/// Response headers that reveal a payment or a balance.
const RECEIPTS: [&str; 4] =
    [BALANCE_HEADER, PAYMENT_RESPONSE_HEADER, X_PAYMENT_RESPONSE_HEADER, PAYMENT_RECEIPT_HEADER];

/// Whether the response to a request is only for the client that sent it.
///
/// [`MeteringLayer`](crate::MeteringLayer) does this for its routes. Use it for handlers next to the layer that read
/// keys or payments.
///
/// ```
/// use http::{HeaderMap, HeaderValue};
/// use metering_core::Privacy;
///
/// let request = HeaderMap::from_iter([(http::header::AUTHORIZATION, HeaderValue::from_static("Bearer sk_live_..."))]);
/// let privacy = Privacy::of(&request);
/// let public = HeaderValue::from_static("public, max-age=60");
/// let mut response = HeaderMap::from_iter([(http::header::CACHE_CONTROL, public)]);
/// privacy.protect(&mut response);
/// assert_eq!(response["cache-control"], "max-age=60, private");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privacy {
    has_credentials: bool,
}

impl Privacy {
    /// Reads whether a request has credentials: a key in any header, a payment, or the sign-in of a wallet. They need
    /// not be valid.
    #[must_use]
    pub fn of(request: &HeaderMap) -> Self {
        Self { has_credentials: request.keys().any(|name| is_credential(name.as_str())) }
    }

    /// The same for a request whose headers were read before.
    pub(super) const fn of_received(request: Received) -> Self {
        Self { has_credentials: request.has_credentials() }
    }

    /// Makes a response private ([`private_cache_control`]) if its request has credentials, or if it has a receipt.
    pub fn protect(self, response: &mut HeaderMap) {
        if !self.has_credentials && !RECEIPTS.iter().any(|name| response.contains_key(*name)) {
            return;
        }
        if let Some(value) = private_value(response) {
            response.insert(header::CACHE_CONTROL, value);
        }
        let is_targeted = |name: &&HeaderName| {
            TARGETED_CACHE_HEADERS.contains(&name.as_str()) || name.as_str().ends_with(TARGETED_SUFFIX)
        };
        let targeted: Vec<_> = response.keys().filter(is_targeted).cloned().collect();
        for name in targeted {
            response.remove(name);
        }
    }
}

/// The `Cache-Control` that makes a response private; `None` if the response has it already.
fn private_value(response: &HeaderMap) -> Option<HeaderValue> {
    let lines = || response.get_all(header::CACHE_CONTROL).iter().map(HeaderValue::as_bytes);
    let mut first = lines();
    match (first.next(), first.next()) {
        (None, _) => Some(HeaderValue::from_static("private")),
        (Some(b"private" | b"no-store"), None) => None,
        _ => {
            let value = HeaderValue::try_from(private_cache_control(lines()));
            Some(value.unwrap_or(HeaderValue::from_static("no-store")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        headers.iter().map(pair).collect()
    }

    #[test]
    fn responses_to_credentials_and_with_receipts_are_private() {
        // a header of the request, a header of the response, whether it is private
        let table = [
            (("accept", "*/*"), ("etag", "1"), false),
            (("authorization", "Bearer x"), ("etag", "1"), true),
            (("authorization", "Payment x"), ("etag", "1"), true),
            (("x-api-key", "x"), ("etag", "1"), true),
            (("api-key", "x"), ("etag", "1"), true),
            (("x-goog-api-key", "x"), ("etag", "1"), true),
            (("payment-signature", "x"), ("etag", "1"), true),
            (("x-payment", "x"), ("etag", "1"), true),
            (("payment-authorization", "x"), ("etag", "1"), true),
            (("sign-in-with-x", "x"), ("etag", "1"), true),
            (("accept", "*/*"), ("x-bds-credit-balance", "1"), true),
            (("accept", "*/*"), ("payment-response", "x"), true),
            (("accept", "*/*"), ("x-payment-response", "x"), true),
            (("accept", "*/*"), ("payment-receipt", "x"), true),
        ];
        for (request, other, is_private) in table {
            let mut response = map(&[("cache-control", "public, max-age=5"), other]);
            Privacy::of(&map(&[request])).protect(&mut response);
            let expected = if is_private { "max-age=5, private" } else { "public, max-age=5" };
            assert_eq!(response["cache-control"], expected, "{request:?} {other:?}");
        }
    }

    #[test]
    fn a_private_response_stays_as_it_is() {
        for sent in ["private", "no-store"] {
            let mut response = map(&[("cache-control", sent)]);
            Privacy::of(&map(&[("x-api-key", "x")])).protect(&mut response);
            assert_eq!(response, map(&[("cache-control", sent)]));
        }
    }

    #[test]
    fn no_header_for_single_caches_says_otherwise() {
        let targeted = [
            ("cdn-cache-control", "max-age=5"),
            ("cloudflare-cdn-cache-control", "max-age=5"),
            ("surrogate-control", "max-age=5"),
            ("edge-control", "max-age=5"),
            ("x-accel-expires", "5"),
            ("age", "0"),
        ];
        let mut response = map(&targeted);
        Privacy::of(&map(&[("x-api-key", "x")])).protect(&mut response);
        assert_eq!(response, map(&[("age", "0"), ("cache-control", "private")]));
        let mut public = map(&targeted);
        Privacy::of(&map(&[])).protect(&mut public);
        assert_eq!(public, map(&targeted));
    }
}
