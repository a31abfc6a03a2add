//! A collector of traces that speaks OTLP over HTTP.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::runtime::Runtime;

use super::wait::until;

/// A running collector.
pub(crate) struct Collector {
    address: SocketAddr,
    received: Received,
    _runtime: Runtime,
}

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// The spans of one trace.
pub(crate) struct Trace(Vec<Span>);

impl Collector {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let received = Received::default();
        let accept = |State(received): State<Received>, headers: HeaderMap, body: Bytes| async move {
            received.lock().unwrap().push((headers, body));
        };
        let routes = Router::new().route("/v1/traces", post(accept)).with_state(Arc::clone(&received));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, received, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The headers and bodies of all requests.
    pub(crate) fn received(&self) -> Vec<(HeaderMap, Bytes)> {
        self.received.lock().unwrap().clone()
    }

    /// The name of the service that sent spans.
    pub(crate) fn service(&self) -> String {
        let requests = self.requests();
        let resource = requests[0].resource_spans[0].resource.as_ref().unwrap();
        let name = resource.attributes.iter().find(|attribute| attribute.key == "service.name").unwrap();
        text(name.value.as_ref().unwrap().value.as_ref())
    }

    /// All spans.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let scopes = self.requests().into_iter().flat_map(|request| request.resource_spans);
        scopes.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// Waits for the span of a request with this status to a path of this trace, and returns the trace.
    pub(crate) fn trace(&self, id: &str, spans: usize) -> Trace {
        until("the spans of a trace", || self.of_trace(id).len() >= spans);
        Trace(self.of_trace(id))
    }

    fn of_trace(&self, id: &str) -> Vec<Span> {
        self.spans().into_iter().filter(|span| hex(&span.trace_id) == id).collect()
    }

    fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        self.received().into_iter().map(|(_, body)| ExportTraceServiceRequest::decode(body).unwrap()).collect()
    }
}

impl Trace {
    /// Each span as its path of names from the first one, sorted.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<_> = self.0.iter().map(|span| self.path(span)).collect();
        paths.sort();
        paths
    }

    fn path(&self, span: &Span) -> String {
        match self.0.iter().find(|parent| parent.span_id == span.parent_span_id) {
            Some(parent) => format!("{} > {}", self.path(parent), span.name),
            None => span.name.clone(),
        }
    }

    /// The span with this name.
    pub(crate) fn span(&self, name: &str) -> &Span {
        let mut named = self.0.iter().filter(|span| span.name == name);
        let span = named.next().unwrap_or_else(|| panic!("{:?}", self.paths()));
        assert!(named.next().is_none(), "{:?}", self.paths());
        span
    }

    /// The attributes of the span with this name.
    pub(crate) fn attributes(&self, name: &str) -> HashMap<String, String> {
        let attributes = self.span(name).attributes.iter();
        let value = |value: Option<&_>| text(value);
        attributes
            .map(|attribute| {
                (attribute.key.clone(), value(attribute.value.as_ref().and_then(|any| any.value.as_ref())))
            })
            .collect()
    }
}

/// Bytes as lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{other:?}"),
    }
}
