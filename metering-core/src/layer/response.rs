//! Responses of the layer: errors as HTTP, and headers on responses of the inner service.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use super::header_value::header_value;
use crate::catalogue::ErrorShape;
use crate::error::Error;
use crate::service::PaymentNotice;
use crate::wire::{ErrorBody, MeteredHeaders};

/// Sets headers of a response, replacing earlier ones of the same name. A response can have several challenges.
pub(super) fn set_headers(headers: &mut HeaderMap, lines: impl IntoIterator<Item = (&'static str, String)>) {
    for (name, value) in lines {
        match HeaderValue::try_from(value) {
            Ok(value) if WWW_AUTHENTICATE == name => drop(headers.append(WWW_AUTHENTICATE, value)),
            Ok(value) => drop(headers.insert(HeaderName::from_static(name), value)),
            Err(error) => tracing::error!(%error, name, "could not set a response header"),
        }
    }
}

/// Sets the headers with a request's cost, replacing those of the inner service.
pub(super) fn set_metered(headers: &mut HeaderMap, metered: &MeteredHeaders) {
    metered.each(|name, value| match header_value(value) {
        Ok(value) => drop(headers.insert(HeaderName::from_static(name), value)),
        Err(error) => tracing::error!(%error, name, "could not set a response header"),
    });
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
        self.to_response_with(PaymentNotice::default())
    }

    /// The response, with its payment members ([`Offers::notice`](crate::service::Offers::notice)).
    #[must_use]
    pub fn to_response_with<R: From<String>>(&self, notice: PaymentNotice) -> Response<R> {
        let body = ErrorBody { payable: notice.offers, ..self.body() };
        let mut response = Response::new(R::from(ErrorShape::Own.document(&body, None)));
        // For the shape of its route.
        response.extensions_mut().insert(body);
        if let Some(rate) = self.rate() {
            response.extensions_mut().insert(*rate);
        }
        *response.status_mut() =
            StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        set_headers(headers, self.headers());
        set_headers(headers, notice.headers);
        response
    }
}
