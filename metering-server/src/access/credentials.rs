//! Reads credentials from request headers.

use http::{HeaderMap, HeaderValue};
use metering_core::access::Credentials;
use metering_core::{ApiKey, Error};

/// The credentials of a request.
#[must_use]
pub(crate) fn of(headers: &HeaderMap) -> Credentials {
    Credentials::read(|name| headers.get_all(name).iter().map(HeaderValue::as_bytes))
}

/// The request's API key, if it has one.
///
/// # Errors
/// 401 when the credentials are not a well-formed key.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<ApiKey>, Error> {
    of(headers).key()
}
