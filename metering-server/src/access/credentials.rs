//! Reads credentials from request headers.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};
use metering_core::access::{Caller, Credentials, SessionCredentials};
use metering_core::{ApiKey, Error};

/// The key or the session of a request, if it has one, and the address that it came from.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) key: Option<ApiKey>,
    pub(crate) session: Option<SessionCredentials>,
    pub(crate) address: Option<IpAddr>,
}

impl<'s> From<&'s Sender> for Caller<'s> {
    fn from(sender: &'s Sender) -> Self {
        Self { key: sender.key.as_ref(), session: sender.session.as_ref(), address: sender.address }
    }
}

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
