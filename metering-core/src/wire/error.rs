//! What clients see of an error: a stable code, a sentence to act on, and context.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::account::RateLimits;
use crate::credits::Credits;
use crate::wire::plans::PlansDocument;

/// Every error that the service answers with. Codes are stable: clients branch on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// The body is not JSON.
    InvalidJson,
    /// Fields of the request do not fit.
    ValidationFailed,
    /// Parameters of a metered route do not fit.
    InvalidParameter,
    /// The path could be read in more than one way.
    InvalidPath,
    /// No live key came with the request.
    Unauthorized,
    /// The balance is not above zero.
    InsufficientCredits,
    /// The internal billing secret is missing or wrong.
    Forbidden,
    /// Nothing is here.
    NotFound,
    /// No metered route has that path.
    UnknownRoute,
    /// The path has no such method.
    MethodNotAllowed,
    /// The body took too long to arrive.
    RequestTimeout,
    /// The body is too large.
    PayloadTooLarge,
    /// A cap is reached.
    RateLimited,
    /// The key has as many streams open as it may.
    TooManyStreams,
    /// The service failed.
    InternalError,
    /// The upstream could not be reached or answered with nonsense.
    UpstreamUnreachable,
    /// Too many requests wait to be charged.
    Overloaded,
    /// The service is shutting down.
    ShuttingDown,
    /// The store cannot be read or written at the moment.
    StorageUnavailable,
    /// The upstream says that it is unavailable.
    UpstreamUnavailable,
    /// The upstream took too long.
    UpstreamTimeout,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 21] = [
        Self::InvalidJson,
        Self::ValidationFailed,
        Self::InvalidParameter,
        Self::InvalidPath,
        Self::Unauthorized,
        Self::InsufficientCredits,
        Self::Forbidden,
        Self::NotFound,
        Self::UnknownRoute,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::PayloadTooLarge,
        Self::RateLimited,
        Self::TooManyStreams,
        Self::InternalError,
        Self::UpstreamUnreachable,
        Self::Overloaded,
        Self::ShuttingDown,
        Self::StorageUnavailable,
        Self::UpstreamUnavailable,
        Self::UpstreamTimeout,
    ];

    /// The code and its HTTP status, on one line each.
    const fn entry(self) -> (&'static str, u16) {
        match self {
            Self::InvalidJson => ("invalid_json", 400),
            Self::ValidationFailed => ("validation_failed", 400),
            Self::InvalidParameter => ("invalid_parameter", 400),
            Self::InvalidPath => ("invalid_path", 400),
            Self::Unauthorized => ("unauthorized", 401),
            Self::InsufficientCredits => ("insufficient_credits", 402),
            Self::Forbidden => ("forbidden", 403),
            Self::NotFound => ("not_found", 404),
            Self::UnknownRoute => ("unknown_route", 404),
            Self::MethodNotAllowed => ("method_not_allowed", 405),
            Self::RequestTimeout => ("request_timeout", 408),
            Self::PayloadTooLarge => ("payload_too_large", 413),
            Self::RateLimited => ("rate_limited", 429),
            Self::TooManyStreams => ("too_many_streams", 429),
            Self::InternalError => ("internal_error", 500),
            Self::UpstreamUnreachable => ("upstream_unreachable", 502),
            Self::Overloaded => ("overloaded", 503),
            Self::ShuttingDown => ("shutting_down", 503),
            Self::StorageUnavailable => ("storage_unavailable", 503),
            Self::UpstreamUnavailable => ("upstream_unavailable", 503),
            Self::UpstreamTimeout => ("upstream_timeout", 504),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.entry().0
    }

    /// The HTTP status that goes with it.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.entry().1
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The body of every error.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// A stable code.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub error: ErrorCode,
    /// One sentence to act on.
    pub message: String,
    /// What is wrong, by field or parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<BTreeMap<String, String>>,
    /// After how many seconds trying again may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_sec: Option<u64>,
    /// Which cap is reached: `minute` or `day`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_window: Option<&'static str>,
    /// The account's caps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limits: Option<RateLimits>,
    /// Credits left.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub credit_balance: Option<Credits>,
    /// What the request costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>))]
    pub required: Option<Credits>,
    /// Where plans are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plans_url: Option<String>,
    /// Where a payment is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topup_url: Option<String>,
    /// The plans themselves, with their chains and terms: with `insufficient_credits` only, whose schema says so.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub offer: Option<Arc<PlansDocument>>,
}

impl ErrorBody {
    /// A body without context.
    #[must_use]
    pub fn new(error: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            error,
            message: message.into(),
            fields: None,
            retry_after_sec: None,
            limit_window: None,
            rate_limits: None,
            credit_balance: None,
            required: None,
            plans_url: None,
            topup_url: None,
            offer: None,
        }
    }
}
