//! The trailers of a response whose cost is known only at the end.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use metering_core::charging::HoldUpdated;
use metering_core::wire::{BALANCE_HEADER, CHARGED_HEADER, RECEIPT_HEADER, settled_trailers};

use crate::gateway::headers;

/// The `Trailer` headers of the upstream's response, which belong to its own connection.
#[derive(Debug, Clone, Default)]
pub(in crate::gateway) struct DeclaredTrailers(Vec<HeaderValue>);

impl DeclaredTrailers {
    pub(in crate::gateway) fn of(upstream: &HeaderMap) -> Self {
        Self(upstream.get_all(header::TRAILER).iter().cloned().collect())
    }
}

/// Whether the sender of a request reads trailers (RFC 9110, section 10.1.4).
pub(in crate::gateway) fn are_wanted(request: &HeaderMap) -> bool {
    let values = request.get_all(header::TE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// Announces trailers in the head of a response, perhaps with a receipt. Only a chunked body can have them, so its length is
/// left out.
pub(super) fn declare(head: &mut http::response::Parts, has_receipt: bool) {
    let upstream = head.extensions.remove::<DeclaredTrailers>().unwrap_or_default();
    head.headers.remove(header::CONTENT_LENGTH);
    for name in [BALANCE_HEADER, CHARGED_HEADER].into_iter().chain(has_receipt.then_some(RECEIPT_HEADER)) {
        head.headers.append(header::TRAILER, HeaderValue::from_static(name));
    }
    for names in upstream.0 {
        head.headers.append(header::TRAILER, names);
    }
}

/// The charge, its signed receipt, and the trailers of the upstream.
pub(super) fn of(upstream: Option<HeaderMap>, settled: Option<&HoldUpdated>, receipt: Option<String>) -> HeaderMap {
    let mut trailers = upstream.unwrap_or_default();
    headers::clean_trailers(&mut trailers);
    let receipt = receipt.map(|receipt| (RECEIPT_HEADER, receipt));
    for (name, value) in settled.map(settled_trailers).into_iter().flatten().chain(receipt) {
        if let Ok(value) = HeaderValue::try_from(value) {
            trailers.insert(HeaderName::from_static(name), value);
        }
    }
    trailers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_are_wanted_if_te_says_so() {
        for (te, wanted) in [("trailers", true), ("gzip, Trailers", true), ("gzip", false), ("trailersx", false)] {
            let headers = HeaderMap::from_iter([(header::TE, HeaderValue::from_static(te))]);
            assert_eq!(are_wanted(&headers), wanted, "{te}");
        }
        assert!(!are_wanted(&HeaderMap::new()));
    }
}
