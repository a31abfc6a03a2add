//! Every error reply, whichever part of the service it comes from.

use http::StatusCode;
use metering_core::Error;
use metering_core::wire::{ErrorBody, ErrorCode};

use crate::http::reply::{Reply, json, with_headers};

/// An error on its way to a client.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    body: Box<ErrorBody>,
    headers: Vec<(&'static str, String)>,
}

impl Problem {
    /// An error without context.
    #[must_use]
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { body: Box::new(ErrorBody::new(code, message)), headers: Vec::new() }
    }

    /// A failure of the service itself; its cause was logged.
    #[must_use]
    pub(crate) fn internal() -> Self {
        Error::Internal.into()
    }

    /// Nothing is at that path.
    #[must_use]
    pub(crate) fn not_found() -> Self {
        Self::new(ErrorCode::NotFound, "Nothing is here; see /openapi.json for what there is.")
    }

    /// The path answers to other methods only.
    #[must_use]
    pub(crate) fn method_not_allowed(allowed: &[&str]) -> Self {
        Error::MethodNotAllowed(allowed.iter().map(|method| (*method).to_owned()).collect()).into()
    }

    /// The same error, worth another try after so many seconds.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.body.retry_after_sec = Some(seconds);
        self.headers.push(("retry-after", seconds.to_string()));
        self
    }

    /// The same error with more headers.
    #[must_use]
    pub(crate) fn with_headers(mut self, headers: Vec<(&'static str, String)>) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Its code.
    #[must_use]
    pub(crate) fn code(&self) -> ErrorCode {
        self.body.error
    }

    /// The reply.
    #[must_use]
    pub(crate) fn into_reply(self) -> Reply {
        let status = StatusCode::from_u16(self.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        with_headers(json(status, &self.body), self.headers)
    }
}

impl warp::Reply for Problem {
    fn into_response(self) -> warp::reply::Response {
        self.into_reply().into_response()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self { body: Box::new(error.body()), headers: error.headers() }
    }
}
