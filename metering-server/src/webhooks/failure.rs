//! Why a webhook got no response, in a few words.
//!
//! The words are fixed: nothing that the receiver sent, no address, and no part of the URL is repeated. Customers see
//! them, except for what they would tell about names in the operator's network.

use std::error::Error;
use std::io;
use std::iter;

use rustls::CertificateError;

use super::resolver::NoAllowedAddress;

/// Why a webhook got no response. A later attempt may succeed, except after [`InvalidRequest`](Self::InvalidRequest).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WebhookFailure {
    /// Webhooks may not be sent to any of the host's addresses.
    #[error("all addresses of the host are private or reserved, and not in webhooks.allowed_networks")]
    RefusedAddress,
    /// The host's name has no address, or the lookup failed.
    #[error("the host name could not be resolved")]
    Unresolved,
    /// No connection was made.
    #[error("could not connect: {0}")]
    Connect(io::ErrorKind),
    /// The connection is not secure.
    #[error("TLS failed: {0}")]
    Tls(&'static str),
    /// There was no response in time.
    #[error("there was no response in time")]
    TimedOut,
    /// The connection ended before the response.
    #[error("the connection ended before there was a response")]
    Disconnected,
    /// The response is not HTTP, or its headers are too large.
    #[error("the response is not valid HTTP, or has too many headers")]
    InvalidResponse,
    /// The request cannot be sent: its URL has a scheme that is not allowed, or a header has an invalid value.
    #[error("the webhook cannot be sent: its URL or a header is not valid")]
    InvalidRequest,
}

/// The text for customers if the host has no address that webhooks may be sent to, or none at all.
const NO_ADDRESS: &str = "the host has no address that webhooks may be sent to";

impl WebhookFailure {
    /// The message for customers. A host whose addresses are refused and one that does not exist look the same:
    /// otherwise customers could find out which names exist in the operator's network. Only the log distinguishes them.
    pub(super) fn for_customers(self) -> String {
        match self {
            Self::RefusedAddress | Self::Unresolved => NO_ADDRESS.to_owned(),
            _ => self.to_string(),
        }
    }

    /// The meaning of an error of the HTTP client.
    pub(super) fn of(error: &reqwest::Error) -> Self {
        if find::<NoAllowedAddress>(error).is_some() {
            return Self::RefusedAddress;
        }
        if error.is_timeout() {
            return Self::TimedOut;
        }
        if error.is_dns() {
            return Self::Unresolved;
        }
        if let Some(error) = find::<rustls::Error>(error) {
            return Self::Tls(tls_problem(error));
        }
        if error.is_connect() {
            return Self::Connect(find::<io::Error>(error).map_or(io::ErrorKind::Other, io::Error::kind));
        }
        match find::<hyper::Error>(error) {
            Some(error) if error.is_parse() => Self::InvalidResponse,
            Some(_) => Self::Disconnected,
            None => Self::InvalidRequest,
        }
    }
}

/// The causes of an error, from the outermost to the innermost.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    iter::successors(error.source(), |cause| {
        // An I/O error does not return the error that it wraps as its source.
        match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => (*cause).source(),
        }
    })
}

/// The innermost cause of a type.
fn find<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    causes(error).filter_map(|cause| cause.downcast_ref()).last()
}

const fn tls_problem(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "the issuer of the certificate is not trusted"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "the certificate is for another host name",
        rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "the certificate has expired"
        }
        rustls::Error::InvalidCertificate(_) => "the certificate is not valid",
        _ => "the handshake failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn customers_cannot_tell_a_refused_host_from_a_missing_one() {
        use WebhookFailure::{RefusedAddress, TimedOut, Unresolved};
        assert_eq!(RefusedAddress.for_customers(), Unresolved.for_customers());
        assert_ne!(RefusedAddress.to_string(), Unresolved.to_string(), "the log tells them apart");
        assert_eq!(TimedOut.for_customers(), TimedOut.to_string());
    }
}
