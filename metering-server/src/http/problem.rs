//! Error responses. All parts of the service build theirs here.

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use metering_core::Error;
use metering_core::service::PaymentNotice;
use metering_core::wire::{ErrorBody, ErrorCode};

use crate::http::next_step::next_step;
use crate::http::reply::{Reply, bytes, try_json, with_headers};

/// An error response.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    body: Box<ErrorBody>,
    headers: Vec<(&'static str, String)>,
}

impl Problem {
    /// An error with a code and a message.
    #[must_use]
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { body: Box::new(ErrorBody::new(code, message)), headers: Vec::new() }
    }

    /// An internal error; its cause has been logged.
    #[must_use]
    pub(crate) fn internal() -> Self {
        Error::Internal.into()
    }

    /// 404: nothing is at this path.
    #[must_use]
    pub(crate) fn not_found() -> Self {
        Self::new(ErrorCode::NotFound, "Nothing is at this path; see /openapi.json for the available endpoints.")
    }

    /// 405: the path exists, with other methods.
    #[must_use]
    pub(crate) fn method_not_allowed(allowed: &[&str]) -> Self {
        Error::MethodNotAllowed(allowed.iter().map(|method| (*method).to_owned()).collect()).into()
    }

    /// Adds `Retry-After`, in seconds.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.body.retry_after_sec = Some(seconds);
        self.headers.push(("retry-after", seconds.to_string()));
        self
    }

    /// Adds offers, and the outcome of a payment.
    #[must_use]
    pub(crate) fn with_notice(mut self, notice: PaymentNotice) -> Self {
        self.body.payable = notice.offers;
        self.headers.extend(notice.headers);
        self
    }

    /// The error code.
    #[must_use]
    pub(crate) fn code(&self) -> ErrorCode {
        self.body.error
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The message.
    pub(crate) fn message(&self) -> &str {
        &self.body.message
    }

    /// The reply.
    #[must_use]
    pub(crate) fn into_reply(self) -> Reply {
        let status = self.status();
        let mut reply = try_json(status, &self.body).unwrap_or_else(|error| {
            tracing::error!(%error, "could not serialize an error as JSON");
            bytes(StatusCode::INTERNAL_SERVER_ERROR, HeaderValue::from_static("application/json"), Bytes::new())
        });
        // For the shape of its route.
        reply.extensions_mut().insert(*self.body);
        with_headers(reply, self.headers)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let mut body = error.body();
        if let Some(next_step) = next_step(&error) {
            body.message = format!("{} {next_step}", body.message);
        }
        Self { body: Box::new(body), headers: error.headers() }
    }
}
