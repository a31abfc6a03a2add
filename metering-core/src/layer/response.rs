//! Responses of the layer: errors as HTTP, and headers on responses of the inner service.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use crate::error::Error;

/// Whether the request was not served. Only 502, 503 and 504 mean that; every other response counts as delivered.
pub(super) fn is_undelivered(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

/// Sets headers of a response, replacing earlier ones of the same name.
pub(super) fn set_headers<R>(mut response: Response<R>, headers: Vec<(&'static str, String)>) -> Response<R> {
    for (name, value) in headers {
        match HeaderValue::try_from(value) {
            Ok(value) => drop(response.headers_mut().insert(HeaderName::from_static(name), value)),
            Err(error) => tracing::error!(%error, name, "could not set a response header"),
        }
    }
    response
}

impl Error {
    /// The error as an HTTP response of the protocol, for handlers next to a [`MeteringLayer`](crate::MeteringLayer).
    ///
    /// ```
    /// use http::{Response, StatusCode};
    /// use metering_core::Error;
    ///
    /// let response: Response<String> = Error::Overloaded.to_response();
    /// assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// assert_eq!(response.headers()["retry-after"], "1");
    /// assert!(response.body().starts_with(r#"{"error":"overloaded","#));
    /// ```
    #[must_use]
    pub fn to_response<R: From<String>>(&self) -> Response<R> {
        let body = serde_json::to_string(&self.body()).unwrap_or_else(|error| {
            tracing::error!(%error, "could not serialize an error as JSON");
            "{}".to_owned()
        });
        let mut response = Response::new(R::from(body));
        *response.status_mut() =
            StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        set_headers(response, self.headers())
    }
}
