//! The metered gateway: a [`MeteringLayer`] around the upstream.
//!
//! The layer charges, refunds, and sets the headers, as it does for embedders. This module has the gateway's own steps:
//! it reads the body before the charge, unless the head says that the request will be refused, limits the open streams
//! of a key, and counts a request as in flight until its response has been sent.

mod counted_body;
mod delivery;
mod error_events;
mod forward;
mod forwarded_header;
mod header_names;
mod headers;
mod named_upstreams;
mod passed_headers;
mod policy;
mod public_address;
mod reachable;
mod redirects;
mod replay;
mod reports;
mod request_id;
mod streams;
mod upstream;
pub(crate) mod websocket;

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body::Body;
use metering_core::charging::HoldId;
use metering_core::wire::PAYMENT_SIGNATURE_HEADER;
use metering_core::{Clock, Metered, MeteringLayer, RequestBody, Service, SystemClock, SystemRandomness};
use tower_layer::Layer;
use tower_service::Service as _;

use crate::config::{GatewayConfig, HttpConfig};
use crate::http::{Bodies, Response, into_response, without_reading};
use crate::operations::spans;
use counted_body::until_sent;
use error_events::with_error_events;
use named_upstreams::RequestUpstreams;
use replay::{Replayable, Replays};
use request_id::id_in;
use streams::StreamRoute;

pub(crate) use forward::HttpUpstream;
pub(crate) use headers::ACCOUNT_HEADER;
pub(crate) use named_upstreams::{NamedUpstreams, UpstreamState};
pub(crate) use passed_headers::HeaderSettings;
pub(crate) use reachable::warn_about_upstream;
pub(crate) use reports::Reports;
pub(crate) use streams::Streams;
use upstream::{Served, UpstreamBody};
pub(crate) use upstream::{Source, Upstream};

/// Serves the routes of the catalogue.
#[derive(Debug)]
pub(crate) struct Gateway {
    layer: MeteringLayer,
    metered: Metered<Upstream>,
    upstream: Upstream,
    named: Arc<NamedUpstreams>,
    streams: Arc<Streams>,
    reports: Arc<Reports>,
    service: Arc<Service>,
    replays: Arc<Replays>,
    /// Whether retries on some routes get an earlier response.
    replaying: bool,
    /// Whether some routes need the body before the charge: for its cost, or to check it.
    needs_bodies: bool,
    bodies: Bodies,
    max_body_bytes: usize,
}

impl Gateway {
    /// A gateway in front of `source`, and of those that routes name.
    #[must_use]
    pub(crate) fn new(
        service: Arc<Service>,
        (source, named): (Source, NamedUpstreams),
        config: &GatewayConfig,
        headers: HeaderSettings,
        limits: &HttpConfig,
        bodies: Bodies,
    ) -> Self {
        let (streams, reports) =
            (Arc::new(Streams::new(config.max_streams_per_key.get())), Arc::new(Reports::new(config)));
        let upstream = Upstream::new(source, config, headers, Arc::clone(&reports), bodies.budget().clone());
        let replays = Arc::new(Replays::new(config));
        Self::with(service, (upstream, named), streams, reports, replays, (bodies, limits.max_body_bytes))
    }

    /// The same gateway for another state of the service, other settings of headers and other upstreams that routes name:
    /// both have the same connections to the default upstream, and count the same streams.
    #[must_use]
    pub(crate) fn reconfigured(&self, service: Arc<Service>, headers: HeaderSettings, named: NamedUpstreams) -> Self {
        let (streams, reports) = (Arc::clone(&self.streams), Arc::clone(&self.reports));
        let replays = Arc::clone(&self.replays);
        let bodies = (self.bodies.clone(), self.max_body_bytes);
        Self::with(service, (self.upstream.with_headers(headers), named), streams, reports, replays, bodies)
    }

    fn with(
        service: Arc<Service>,
        (upstream, named): (Upstream, NamedUpstreams),
        streams: Arc<Streams>,
        reports: Arc<Reports>,
        replays: Arc<Replays>,
        (bodies, max_body_bytes): (Bodies, usize),
    ) -> Self {
        let mut routes = service.catalogue().routes().iter();
        let needs_bodies = routes.any(|route| route.usage_price().is_some() || route.body.is_some());
        let replaying = service.catalogue().routes().iter().any(|route| route.replay);
        let (reserving, named) = (Arc::clone(&streams), Arc::new(named));
        let naming = Arc::clone(&named);
        let layer = MeteringLayer::new(Arc::clone(&service)).overlap().on_match(move |key, route, extensions| {
            spans::name_route(&route.method, &route.template);
            let removed = &route.removed_headers;
            if !(removed.request.is_empty() && removed.response.is_empty()) {
                extensions.insert(removed.clone());
            }
            if let Some(document) = &route.serve {
                extensions.insert(Served(document.clone()));
            }
            if let Some(upstreams) = &route.upstreams {
                extensions.insert(RequestUpstreams::new(upstreams, &naming));
            }
            websocket::admit(key, route, extensions, &reserving)?;
            if route.sse {
                let permit = key.map(|key| reserving.reserve(key.hash())).transpose()?;
                extensions.insert(StreamRoute::new(permit));
            }
            Ok(())
        });
        let metered = layer.layer(upstream.clone());
        Self {
            layer,
            metered,
            upstream,
            named,
            streams,
            reports,
            service,
            replays,
            replaying,
            needs_bodies,
            bodies,
            max_body_bytes,
        }
    }

    /// The open streams.
    #[must_use]
    pub(crate) fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }

    /// The requests whose cost their response reports.
    #[must_use]
    pub(crate) fn reports(&self) -> &Arc<Reports> {
        &self.reports
    }

    /// The upstreams that routes name.
    #[must_use]
    pub(crate) fn named_upstreams(&self) -> &NamedUpstreams {
        &self.named
    }

    /// The responses that retries can get.
    #[must_use]
    pub(crate) fn replays(&self) -> &Arc<Replays> {
        &self.replays
    }

    /// Responds to a request.
    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut head, body) = request.into_parts();
        let id = HoldId::at(SystemClock.now(), &SystemRandomness);
        head.extensions.insert(id);
        websocket::read(&mut head);
        if !body.is_end_stream()
            && let Err(refusal) = Box::pin(self.layer.precheck::<UpstreamBody>(&mut head)).await
        {
            spans::name_request(|| id);
            return with_error_events(Box::pin(without_reading(refusal.map(Into::into), &head, body)).await);
        }
        // Read the body before the charge: a request whose body never arrives must not be charged.
        let body = match self.bodies.read(body, self.max_body_bytes, &head.extensions).await {
            Ok(body) => body,
            Err(problem) => {
                spans::name_request(|| id);
                let shape = self.service.catalogue().errors_near(head.uri.path());
                return shape.finish(into_response(problem.into_reply()).map(UpstreamBody::from), id).map(Into::into);
            }
        };
        if self.needs_bodies {
            head.extensions.insert(RequestBody::new(body.clone()));
        }
        let may_replay = self.replaying || head.headers.contains_key(PAYMENT_SIGNATURE_HEADER);
        let replayable =
            may_replay.then(|| Replayable::read(&self.service, &head, &body, self.bodies.budget())).flatten();
        let mut metered = self.metered.clone();
        let serving = async move {
            // Without `poll_ready`: the upstream is always ready.
            match metered.call(Request::from_parts(head, body)).await {
                Ok(response) => until_sent(websocket::open(response.map(Into::into))),
                Err(never) => match never {},
            }
        };
        let response = match replayable {
            Some(request) => Box::pin(self.replays.respond(&self.service, request, serving)).await,
            None => serving.await,
        };
        // A charge gives the request another id, which its response has.
        spans::name_request(|| id_in(response.headers()).unwrap_or(id));
        self.named.note(&response);
        with_error_events(response)
    }
}
