//! The credentials that a request came with.

use http::{HeaderMap, HeaderValue};
use metering_core::{ApiKey, Credentials};

/// Who a request says it is from.
#[must_use]
pub(crate) fn of(headers: &HeaderMap) -> Credentials {
    Credentials::read(|name| headers.get_all(name).iter().map(HeaderValue::as_bytes))
}

/// The key that a request came with, if it was well-formed.
#[must_use]
pub(crate) fn key(headers: &HeaderMap) -> Option<ApiKey> {
    of(headers).key
}
