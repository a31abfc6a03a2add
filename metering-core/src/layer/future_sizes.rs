//! A request's futures are moved about, and exist for as long as it is served: so the common ones must be small. Box
//! rare futures rather than raise a limit.

use std::convert::Infallible;

use http::{Request, Response};
use tower::util::BoxCloneService;

use super::MeteringLayer;
use crate::charging::hold::HoldTerms;
use crate::service::RequestHead;
use crate::{Charge, Meter, Service};

/// The size of the future that a function returns. It is not called.
fn size<A, F: Future>(_: impl FnOnce(A) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn futures_of_charged_requests_are_small() {
    type Inner = BoxCloneService<Request<()>, Response<String>, Infallible>;
    type ToHold = (&'static Meter, Charge, HoldTerms);
    // future, its size, the limit
    let futures = [
        ("Meter::charge", size(|(meter, charge): (&'static Meter, Charge)| meter.charge(charge)), 704),
        ("Meter::charge_early", size(|(meter, charge): (&'static Meter, Charge)| meter.charge_early(charge)), 1_248),
        ("Meter::hold", size(|(meter, charge, terms): ToHold| meter.hold(charge, terms)), 1_024),
        ("Service::admit", size(|(service, head): (&'static Service, RequestHead<'static>)| service.admit(head)), 896),
        (
            "MeteringLayer::serve",
            size(|(layer, inner, request): (MeteringLayer, Inner, Request<()>)| layer.serve(inner, request)),
            3_464,
        ),
    ];
    assert!(futures.iter().all(|(_, size, limit)| size <= limit), "{futures:#?}");
}
