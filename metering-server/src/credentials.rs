//! The credentials that a request came with.

use http::{HeaderMap, HeaderValue};
use metering_core::{ApiKey, Credentials, Error};

/// Who a request says it is from.
#[must_use]
pub(crate) fn of(headers: &HeaderMap) -> Credentials {
    Credentials::read(|name| headers.get_all(name).iter().map(HeaderValue::as_bytes))
}

/// The key that a request came with, if any.
///
/// # Errors
/// 401 when what was sent is not a key.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<ApiKey>, Error> {
    of(headers).key()
}
