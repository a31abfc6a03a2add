//! The shapes in which the clients of well-known APIs read errors.
//!
//! Stock clients show only the error members that they support. So a route may declare which API's clients call it, and
//! its errors also get the members that those clients read (`wire/shaped_error`).

use serde::Deserialize;

/// How the errors of a route look. [`ErrorShape::document`] has an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ErrorShape {
    /// This service's own: `error` is a code, and `message` a sentence.
    #[default]
    #[serde(skip)]
    Own,
    /// OpenAI's error object: `error` has `message`, `type`, `param` and `code`.
    OpenAi,
    /// Anthropic's API: `type` is `error`, `error` has `type` and `message`, and `request_id` is next to it.
    Anthropic,
    /// Google's error object: `error` has `code`, `message` and `status`.
    Gemini,
    /// RFC 9457: `type`, `title`, `status` and `detail`.
    Problem,
}

impl ErrorShape {
    /// The value of `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Problem => "application/problem+json",
            _ => "application/json",
        }
    }

    /// The header in which clients look for the id of their request.
    #[must_use]
    pub const fn request_id_header(self) -> &'static str {
        match self {
            Self::Anthropic => "request-id",
            _ => "x-request-id",
        }
    }
}
