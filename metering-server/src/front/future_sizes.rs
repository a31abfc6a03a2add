//! A request's futures are moved around and live as long as the request, so the common ones must be small. Box what is
//! rare, rather than raise a limit.

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use hyper::body::Incoming;

use super::{Destination, Front};
use crate::gateway::{Gateway, HttpUpstream};

/// The size of the future that a function returns. It is not called.
fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn futures_of_forwarded_requests_are_small() {
    type ToFront = (&'static Front, Request<Incoming>);
    type ToGateway = (&'static Gateway, Request<Incoming>);
    type ToUpstream = (&'static HttpUpstream, &'static Parts);
    // future, its size, the limit
    let futures = [
        ("Front::respond", size(|(front, request): ToFront| front.respond(Destination::Gateway, request)), 6_144),
        ("Gateway::respond", size(|(gateway, request): ToGateway| gateway.respond(request)), 2_560),
        ("HttpUpstream::call", size(|(upstream, head): ToUpstream| upstream.call(head, Bytes::new(), false)), 4_096),
    ];
    assert!(futures.iter().all(|(_, size, limit)| size <= limit), "{futures:#?}");
}
