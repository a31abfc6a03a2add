//! The upstream behind the gateway: an HTTP service or the built-in sample feed.

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use crate::gateway::forward::Call;
pub(crate) use crate::gateway::forward::HttpUpstream;
use crate::http::{Problem, Response, bytes, into_response};
use crate::sample::{SampleFeed, SampleResponse};

/// The upstream behind the gateway.
#[derive(Debug)]
pub(crate) enum Upstream {
    /// An HTTP service.
    Http(HttpUpstream),
    /// The built-in sample feed.
    Sample(SampleFeed),
}

impl Upstream {
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Response, Problem> {
        match self {
            Self::Http(upstream) => upstream.call(call).await,
            Self::Sample(feed) => Ok(sample(feed, &call)),
        }
    }
}

fn sample(feed: &SampleFeed, call: &Call<'_>) -> Response {
    let (path, query) = match call.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (call.target, None),
    };
    let last_event_id = call.head.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let mut response = match feed.respond(path, query, last_event_id) {
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
