//! [`Received`]: which of the headers that the layer reads a request has. They are found in one pass, since few
//! requests have more than two of them.

use http::{HeaderMap, HeaderValue};

use crate::access::KEY_HEADERS;
use crate::catalogue::override_headers::overrides_request;
use crate::wire::{
    AUTHORIZATION_HEADER, IDEMPOTENCY_HEADER, MAX_COST_HEADER, PAYMENT_AUTHORIZATION_HEADER, PAYMENT_SIGNATURE_HEADER,
    SIGN_IN_HEADER, SOURCE_HEADER, X_PAYMENT_HEADER,
};

/// The headers that most requests are searched for. The first [`CREDENTIALS`] of them identify the payer.
const NAMES: [&str; 11] = {
    // A header for keys that is missing here does not compile.
    let [own, azure, google] = KEY_HEADERS;
    [
        AUTHORIZATION_HEADER,
        own,
        azure,
        google,
        PAYMENT_SIGNATURE_HEADER,
        X_PAYMENT_HEADER,
        PAYMENT_AUTHORIZATION_HEADER,
        SIGN_IN_HEADER,
        SOURCE_HEADER,
        IDEMPOTENCY_HEADER,
        MAX_COST_HEADER,
    ]
};

/// How many of [`NAMES`] are credentials.
const CREDENTIALS: usize = 8;

/// Which headers a request has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// A bit for each of [`NAMES`].
    known: u16,
    has_overrides: bool,
}

impl Received {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut received = Self::default();
        for name in headers.keys() {
            match bit(name.as_str()) {
                Some(bit) => received.known |= bit,
                None => received.has_overrides |= overrides_request(name.as_str()),
            }
        }
        received
    }

    /// Whether a header could make a service run a different request.
    pub(super) const fn has_overrides(self) -> bool {
        self.has_overrides
    }

    /// Whether the request has a key in any header, a payment, or the sign-in of a wallet. They need not be valid.
    pub(super) const fn has_credentials(self) -> bool {
        self.known & ((1 << CREDENTIALS) - 1) != 0
    }

    /// The values of all lines of a header. `headers` must belong to the same request. A header of [`NAMES`] that the
    /// request does not have is not looked up.
    pub(super) fn values<'h>(
        self,
        headers: &'h HeaderMap,
        name: &'static str,
    ) -> impl Iterator<Item = &'h [u8]> + use<'h> {
        let may_be_there = bit(name).is_none_or(|bit| self.known & bit != 0);
        may_be_there.then(|| headers.get_all(name)).into_iter().flatten().map(HeaderValue::as_bytes)
    }
}

/// Whether a header, in lower case, identifies the payer.
pub(super) fn is_credential(name: &str) -> bool {
    NAMES[..CREDENTIALS].contains(&name)
}

fn bit(name: &str) -> Option<u16> {
    NAMES.iter().position(|known| *known == name).map(|at| 1 << at)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::access::Credentials;
    use crate::wire::PAYMENT_REQUEST_HEADERS;

    fn map(names: &[&'static str]) -> HeaderMap {
        names.iter().copied().map(|name| (HeaderName::from_static(name), HeaderValue::from_static("x"))).collect()
    }

    #[test]
    fn every_header_is_read_as_without_the_pass() {
        let others = ["accept", "host", "x-bds-credit-balance", "x-stainless-retry-count"];
        let all: Vec<_> = NAMES.into_iter().chain(PAYMENT_REQUEST_HEADERS).chain(others).collect();
        for sent in all.iter().copied() {
            let headers = map(&[sent]);
            let received = Received::of(&headers);
            assert_eq!(received.has_credentials(), is_credential(sent), "{sent}");
            assert!(!received.has_overrides(), "{sent}");
            for read in all.iter().copied() {
                assert_eq!(received.values(&headers, read).count(), usize::from(sent == read), "{sent} {read}");
            }
        }
        let mut twice = map(&["x-api-key"]);
        twice.append("x-api-key", HeaderValue::from_static("y"));
        assert_eq!(Received::of(&twice).values(&twice, "x-api-key").collect::<Vec<_>>(), [b"x", b"y"]);
    }

    #[test]
    fn what_credentials_are_read_from_is_in_the_list() {
        let read = std::cell::RefCell::new(Vec::new());
        let _ = Credentials::read(|name| {
            read.borrow_mut().push(name);
            std::iter::empty()
        });
        assert!(!read.borrow().is_empty());
        for name in read.into_inner() {
            assert!(bit(name).is_some(), "{name}");
        }
    }

    #[test]
    fn overrides_are_seen_in_any_spelling() {
        for (name, expected) in [("x-original-url", true), ("x_http_method_override", true), ("x-request-id", false)] {
            assert_eq!(Received::of(&map(&["accept", name])).has_overrides(), expected, "{name}");
        }
    }
}
