//! The head of a request as the gate reads it.

use std::net::IpAddr;

use http::{Extensions, Method, Uri};

use crate::access::credentials::{ClientAddress, Credentials};
use crate::service::{RequestContent, RequestHead};

/// The address of the client, if it is known.
pub(super) fn address(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ClientAddress>().map(|client| client.0)
}

/// The parts that admission needs, without a payment.
pub(super) fn request_head<'r>(
    (method, uri): (&'r Method, &'r Uri),
    credentials: &'r Credentials,
    address: Option<IpAddr>,
    body: Option<RequestContent<'r>>,
) -> RequestHead<'r> {
    RequestHead {
        key: credentials.key.as_ref(),
        address,
        method: method.as_str(),
        body,
        path: uri.path(),
        query: uri.query(),
        source: credentials.source,
        idempotency_key: credentials.idempotency_key(),
        payment: None,
    }
}
