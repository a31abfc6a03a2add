//! Builds responses, complete or streaming.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use metering_core::wire::CHALLENGE_HEADER;
use serde::Serialize;

/// A complete reply.
pub(crate) type Reply = http::Response<Bytes>;

/// A response whose body may stream.
pub(crate) type Response = http::Response<UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>>;

/// A response that is being made.
pub(crate) type ResponseFuture = std::pin::Pin<Box<dyn Future<Output = Response> + Send>>;

/// A reply with a JSON body. It must not be cached: most carry account data.
///
/// # Errors
/// When the value has no JSON form.
pub(super) fn try_json<T: Serialize>(status: StatusCode, value: &T) -> serde_json::Result<Reply> {
    Ok(bytes(status, HeaderValue::from_static("application/json"), serde_json::to_vec(value)?.into()))
}

/// A reply with the given bytes as its body.
pub(crate) fn bytes(status: StatusCode, content_type: HeaderValue, bytes: Bytes) -> Reply {
    let mut reply = http::Response::new(bytes);
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

/// Converts a complete reply to a [`Response`].
pub(crate) fn into_response(reply: Reply) -> Response {
    reply.map(|bytes| Full::new(bytes).map_err(|never| match never {}).boxed_unsync())
}

/// Removes the body and keeps `Content-Length`: the response to `HEAD`.
pub(crate) fn without_body(response: Response) -> Response {
    let length = response.body().size_hint().exact();
    let mut response = response.map(|_| Empty::new().map_err(|never| match never {}).boxed_unsync());
    if let Some(length) = length
        && response.status() != StatusCode::NOT_MODIFIED
    {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Sets headers, replacing earlier values, except for challenges.
pub(crate) fn with_headers<B>(
    mut response: http::Response<B>,
    headers: Vec<(&'static str, String)>,
) -> http::Response<B> {
    for (name, value) in headers {
        match HeaderValue::try_from(value) {
            // Each challenge has its own line.
            Ok(value) if name == CHALLENGE_HEADER => {
                response.headers_mut().append(HeaderName::from_static(name), value);
            }
            Ok(value) => drop(response.headers_mut().insert(HeaderName::from_static(name), value)),
            Err(error) => tracing::error!(%error, name, "could not set a header"),
        }
    }
    response
}
