//! The metered gateway: a [`MeteringLayer`] around the upstream.
//!
//! The layer charges, refunds, and sets the headers, as it does for embedders. Here is what only the gateway does: it
//! reads the body before the charge, limits the open streams of a key, and counts a request as under way until its
//! response has been sent.

mod delivery;
mod forward;
mod headers;
mod policy;
mod reachable;
mod reports;
mod streams;
mod under_way;
mod upstream;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body::Body;
use metering_core::{Metered, MeteringLayer, RequestBody, Service};
use tower::ServiceExt;
use tower_layer::Layer;

use crate::config::{GatewayConfig, HttpConfig};
use crate::http::{Response, into_response, read_capped};
use crate::operations::spans;
use streams::StreamRoute;
use under_way::until_sent;

pub(crate) use forward::HttpUpstream;
pub(crate) use headers::ACCOUNT_HEADER;
pub(crate) use reachable::warn_about_upstream;
pub(crate) use reports::Reports;
pub(crate) use streams::Streams;
pub(crate) use upstream::{Source, Upstream};

/// Serves the routes of the catalogue.
#[derive(Debug)]
pub(crate) struct Gateway {
    metered: Metered<Upstream>,
    upstream: Upstream,
    streams: Arc<Streams>,
    reports: Arc<Reports>,
    /// Whether some routes need the body before the charge: for its cost, or to check it.
    needs_bodies: bool,
    prefixes: BTreeSet<String>,
    limits: HttpConfig,
}

impl Gateway {
    /// A gateway in front of `source`.
    #[must_use]
    pub(crate) fn new(service: Arc<Service>, source: Source, config: &GatewayConfig, limits: HttpConfig) -> Self {
        let (streams, reports) =
            (Arc::new(Streams::new(config.max_streams_per_key.get())), Arc::new(Reports::new(config)));
        let upstream = Upstream::new(source, config, Arc::clone(&reports));
        Self::with(service, upstream, streams, reports, limits)
    }

    /// The same gateway for another state of the service: both have the same upstream connections, and count the same
    /// streams.
    #[must_use]
    pub(crate) fn reconfigured(&self, service: Arc<Service>) -> Self {
        let (streams, reports) = (Arc::clone(&self.streams), Arc::clone(&self.reports));
        Self::with(service, self.upstream.clone(), streams, reports, self.limits.clone())
    }

    fn with(
        service: Arc<Service>,
        upstream: Upstream,
        streams: Arc<Streams>,
        reports: Arc<Reports>,
        limits: HttpConfig,
    ) -> Self {
        let prefixes = service.catalogue().prefixes().into_iter().map(str::to_owned).collect();
        let mut routes = service.catalogue().routes().iter();
        let needs_bodies = routes.any(|route| route.usage_price().is_some() || route.body.is_some());
        let reserving = Arc::clone(&streams);
        let layer = MeteringLayer::new(service).on_match(move |key, route, extensions| {
            spans::name_route(&route.method, &route.template);
            if route.sse {
                let permit = key.map(|key| reserving.reserve(key.hash())).transpose()?;
                extensions.insert(StreamRoute::new(permit));
            }
            Ok(())
        });
        let metered = layer.layer(upstream.clone());
        Self { metered, upstream, streams, reports, needs_bodies, prefixes, limits }
    }

    /// Whether the gateway serves a path: its first segment is that of a metered route.
    #[must_use]
    pub(crate) fn handles(&self, path: &str) -> bool {
        path.split('/').nth(1).is_some_and(|first| self.prefixes.contains(first))
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

    /// Responds to a request.
    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut head, body) = request.into_parts();
        // Read the body before the charge: a request whose body never arrives must not be charged.
        let body = match read_capped(body, self.limits.max_body_bytes, self.limits.body_timeout.duration()).await {
            Ok(body) => body,
            Err(problem) => return into_response(problem.into_reply()),
        };
        if self.needs_bodies {
            head.extensions.insert(RequestBody::new(body.clone()));
        }
        match self.metered.clone().oneshot(Request::from_parts(head, body)).await {
            Ok(response) => until_sent(response.map(Into::into)),
            Err(never) => match never {},
        }
    }
}
