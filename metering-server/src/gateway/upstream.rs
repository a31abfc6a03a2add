//! The upstream as a service: what the gateway's layer wraps.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use metering_core::catalogue::{CheckedBody, HiddenEvents, JsonText, RemovedHeaders};
use metering_core::{Charged, trace};
use metering_sample::{SampleFeed, SampleResponse};
use tower_service::Service;
use tracing::Instrument;

use crate::config::GatewayConfig;
use crate::gateway::delivery::{ResponseBody, refunded_if_broken};
use crate::gateway::forward::HttpUpstream;
use crate::gateway::named_upstreams::RequestUpstreams;
use crate::gateway::passed_headers::{HeaderSettings, PassedHeaders};
use crate::gateway::policy::ResponsePolicy;
use crate::gateway::reports::{ByUsage, Hides, Reports, are_wanted};
use crate::gateway::streams::StreamRoute;
use crate::http::{BodyBudget, Connection, Problem, Response, bytes, into_response};

/// Where responses come from, for routes that name no upstream.
#[derive(Debug)]
pub(crate) enum Source {
    /// An HTTP service.
    Http(HttpUpstream),
    /// The built-in sample feed.
    Sample(SampleFeed),
}

/// The upstream behind the gateway. Its responses are ready to be sent, apart from what the layer adds.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    shared: Arc<Shared>,
    headers: Arc<HeaderSettings>,
}

#[derive(Debug)]
struct Shared {
    source: Source,
    policy: ResponsePolicy,
    reports: Arc<Reports>,
    budget: BodyBudget,
}

impl Upstream {
    pub(crate) fn new(
        source: Source,
        config: &GatewayConfig,
        headers: HeaderSettings,
        reports: Arc<Reports>,
        budget: BodyBudget,
    ) -> Self {
        let shared = Shared { source, policy: ResponsePolicy::new(config), reports, budget };
        Self { shared: Arc::new(shared), headers: Arc::new(headers) }
    }

    /// The same upstream with new header settings. Requests in progress keep the old ones.
    pub(crate) fn with_headers(&self, headers: HeaderSettings) -> Self {
        Self { shared: Arc::clone(&self.shared), headers: Arc::new(headers) }
    }
}

impl Service<Request<Bytes>> for Upstream {
    type Response = http::Response<UpstreamBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Bytes>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        let route = request.extensions_mut().remove::<RemovedHeaders>().unwrap_or_default();
        let passed = PassedHeaders::new(Arc::clone(&self.headers), route);
        if passed.change_requests() {
            request.extensions_mut().insert(passed.clone());
        }
        Box::pin(async move {
            let response = match shared.respond(request).await {
                Ok(response) => passed.clean(response),
                // A 502, 503 or 504, for which the layer refunds the charge.
                Err(problem) => into_response(problem.into_reply()),
            };
            Ok(response.map(UpstreamBody))
        })
    }
}

/// The document of a request to a route that the gateway responds to itself.
#[derive(Debug, Clone)]
pub(super) struct Served(pub(super) JsonText);

impl Shared {
    async fn respond(self: &Arc<Self>, request: Request<Bytes>) -> Result<Response, Problem> {
        let (mut head, body) = request.into_parts();
        if let Some(Served(document)) = head.extensions.remove() {
            let document = Bytes::copy_from_slice(document.text().as_bytes());
            return Ok(into_response(bytes(StatusCode::OK, HeaderValue::from_static("application/json"), document)));
        }
        let body = head.extensions.remove::<CheckedBody>().map_or(body, Bytes::from_owner);
        let stream = head.extensions.remove::<StreamRoute>();
        let named = head.extensions.remove::<RequestUpstreams>();
        let by_usage = head.extensions.get::<Charged>().and_then(|charged| Some((charged.usage_price()?, charged)));
        let Some((price, charged)) = by_usage else {
            let response = self.fetch(&head, body, stream.is_some(), named).await?;
            let response = match head.extensions.remove::<Charged>() {
                Some(charged) => refunded_if_broken(response, charged),
                None => response,
            };
            return Ok(held(response, stream, head.extensions.get()));
        };
        let hidden = head.extensions.get::<HiddenEvents>().cloned();
        let by_usage = ByUsage {
            charged: charged.clone(),
            price: Arc::clone(price),
            wants_trailers: are_wanted(&head.headers),
            hides: hidden.map(|hidden| Hides::new(move |data| hidden.hides(data))),
            request_bytes: u64::try_from(body.len()).unwrap_or(u64::MAX),
            share: self.budget.share(&head.extensions),
        };
        let (shared, streams, connection) = (Arc::clone(self), stream.is_some(), head.extensions.get().cloned());
        // It continues in a separate task, below the span of the request.
        let fetching = async move { shared.fetch(&head, body, streams, named).await }.instrument(trace::current());
        let response = Box::pin(self.reports.serve(by_usage, fetching)).await?;
        Ok(held(response, stream, connection.as_ref()))
    }

    async fn fetch(
        &self,
        head: &Parts,
        body: Bytes,
        streams: bool,
        named: Option<RequestUpstreams>,
    ) -> Result<Response, Problem> {
        let response = match (named, &self.source) {
            // Boxed, to keep the future of other requests small.
            (Some(named), _) => Box::pin(async move { named.serve(head, body, streams).await }).await?,
            (None, Source::Http(upstream)) => upstream.call(head, body, streams).await?,
            (None, Source::Sample(feed)) => sample(feed, head),
        };
        Ok(self.policy.apply(response))
    }
}

/// The response of a stream route holds the slot of its stream.
fn held(response: Response, stream: Option<StreamRoute>, connection: Option<&Connection>) -> Response {
    match stream {
        Some(stream) => stream.hold(response, connection),
        None => response,
    }
}

/// A response body that can be made from a text, as the layer makes those of its errors.
pub(crate) struct UpstreamBody(ResponseBody);

impl From<String> for UpstreamBody {
    fn from(text: String) -> Self {
        Self(Full::from(text).map_err(|never| match never {}).boxed_unsync())
    }
}

impl From<ResponseBody> for UpstreamBody {
    fn from(body: ResponseBody) -> Self {
        Self(body)
    }
}

impl From<UpstreamBody> for ResponseBody {
    fn from(body: UpstreamBody) -> Self {
        body.0
    }
}

fn sample(feed: &SampleFeed, head: &Parts) -> Response {
    let last_event_id = head.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let mut response = match feed.respond(head.uri.path(), head.uri.query(), last_event_id) {
        SampleResponse::Json { status, body } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            into_response(bytes(status, HeaderValue::from_static("application/json"), body))
        }
        SampleResponse::Events(events) => {
            let frames = events.map(|event: Bytes| Ok(Frame::data(event)));
            let mut response = http::Response::new(StreamBody::new(frames).boxed_unsync());
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            // Tells nginx and similar proxies not to buffer events.
            headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
            response
        }
    };
    response.headers_mut().insert("x-sample-data", HeaderValue::from_static("true"));
    response
}
