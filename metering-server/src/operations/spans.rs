//! The spans of requests, and the propagation of a trace from the caller to the upstream (W3C Trace Context).
//!
//! Attributes have the names of OpenTelemetry's semantic conventions for HTTP. Paths and queries are not among them:
//! they may name people and secrets. A route's template does not.

use http::{HeaderMap, HeaderValue, Request, StatusCode};
use metering_core::charging::HoldId;
use metering_core::trace;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::config::Surface;

const TRACESTATE: &str = "tracestate";

/// The span of a request to this server. It ends with the head of the response, or when the request's hold is settled.
pub(crate) fn of_request<B>(surface: Surface, request: &Request<B>) -> Span {
    let span = info_span!(
        target: trace::TARGET,
        "request",
        otel.kind = "server",
        otel.name = Empty,
        otel.status_code = Empty,
        http.request.method = request.method().as_str(),
        http.route = Empty,
        http.response.status_code = Empty,
        metering.surface = surface.as_str(),
        metering.request_id = Empty,
    );
    if !span.is_disabled() {
        let caller = TraceContextPropagator::new().extract(&HeaderExtractor(request.headers()));
        // Fails only for a span that is not recorded.
        let _ = span.set_parent(caller);
    }
    span
}

/// The current request is one to this route.
pub(crate) fn name_route(method: &str, template: &str) {
    let span = trace::current();
    if !span.is_disabled() {
        span.record("otel.name", format!("{method} {template}"));
        span.record("http.route", template);
    }
}

/// The current request has this id, which its client gets too. Only read if spans are recorded.
pub(crate) fn name_request(id: impl FnOnce() -> HoldId) {
    let span = trace::current();
    if !span.is_disabled() {
        span.record("metering.request_id", tracing::field::display(id()));
    }
}

/// The response to the request of a span has this status.
pub(crate) fn responded(span: &Span, status: StatusCode) {
    if !span.is_disabled() {
        span.record("http.response.status_code", status.as_u16());
        if status.is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
    }
}

/// The span of a request to an upstream, which has a name if it is one of several.
pub(crate) fn of_upstream(method: &str, name: Option<&str>) -> Span {
    info_span!(
        target: trace::TARGET,
        "upstream",
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = method,
        http.response.status_code = Empty,
        metering.upstream = name,
    )
}

/// The upstream responded with this status, or failed to respond.
pub(crate) fn upstream_responded(span: &Span, status: Option<StatusCode>) {
    match status {
        Some(status) => responded(span, status),
        None => drop(span.record("otel.status_code", "ERROR")),
    }
}

/// Makes the current span the parent of the upstream's spans, if spans are recorded. Otherwise the caller's headers
/// stay.
pub(crate) fn propagate(headers: &mut HeaderMap) {
    let span = trace::current();
    if !span.is_disabled() {
        TraceContextPropagator::new().inject_context(&span.context(), &mut HeaderInjector(headers));
        if headers.get(TRACESTATE).is_some_and(HeaderValue::is_empty) {
            headers.remove(TRACESTATE);
        }
    }
}
