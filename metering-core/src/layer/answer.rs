//! Answers of the layer: errors as HTTP, and headers on what the inner service answered.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use crate::error::Error;

/// 502, 503 and 504 mean that a request was not served; every other answer is one.
pub(super) fn is_undelivered(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

/// Sets headers of an answer, in the place of earlier ones of the same name.
pub(super) fn set_headers<R>(mut answer: Response<R>, headers: Vec<(&'static str, String)>) -> Response<R> {
    for (name, value) in headers {
        match HeaderValue::try_from(value) {
            Ok(value) => drop(answer.headers_mut().insert(HeaderName::from_static(name), value)),
            Err(error) => tracing::error!(%error, name, "a header could not be written"),
        }
    }
    answer
}

impl Error {
    /// The error as the HTTP answer that clients know, for handlers beside a [`MeteringLayer`](crate::MeteringLayer).
    #[must_use]
    pub fn to_response<R: From<String>>(&self) -> Response<R> {
        let body = serde_json::to_string(&self.body()).unwrap_or_else(|error| {
            tracing::error!(%error, "an error could not be written as JSON");
            "{}".to_owned()
        });
        let mut answer = Response::new(R::from(body));
        *answer.status_mut() = StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        set_headers(answer, self.headers())
    }
}
