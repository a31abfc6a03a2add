//! A payment that was not made, as a response: the caller gets the reason in the format of the service's own errors.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::once;
use http::{HeaderValue, Response, StatusCode, header};
use metering_client::BodyStream;
use serde_json::json;

use crate::client::paying::codes::{INTERRUPTED_CODE, LIMIT_CODE, NOT_MADE_CODE, UNRESOLVED_CODE};
use crate::failure::Failure;

/// The response for a failure. Its status makes the client produce the same failure again.
pub(super) fn response(failure: &Failure) -> Response<BodyStream> {
    let (status, code) = match failure {
        Failure::OverLimit(_) => (StatusCode::PAYMENT_REQUIRED, LIMIT_CODE),
        Failure::NoCredits(_) => (StatusCode::PAYMENT_REQUIRED, NOT_MADE_CODE),
        Failure::Conflict(_) => (StatusCode::CONFLICT, UNRESOLVED_CODE),
        Failure::Usage(_) => (StatusCode::BAD_REQUEST, NOT_MADE_CODE),
        Failure::TryLater(_) => (StatusCode::SERVICE_UNAVAILABLE, NOT_MADE_CODE),
        Failure::Interrupted(_) => (StatusCode::BAD_REQUEST, INTERRUPTED_CODE),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, NOT_MADE_CODE),
    };
    let message = format!("{}.", failure.one_line().trim_end_matches('.'));
    let body = json!({"error": code, "message": message}).to_string();
    let mut response = Response::new(whole(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A body that is already in memory.
pub(super) fn whole(body: Bytes) -> BodyStream {
    once(std::future::ready(Ok(body))).boxed()
}
