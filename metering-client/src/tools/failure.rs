//! Failed calls, as results that an agent can act on.
//!
//! The gateway's errors are passed on with their JSON unchanged. All other failures get the same form: a code, a
//! sentence, and the charge, if that is known.

use http::HeaderMap;
use metering_core::wire::{BALANCE_HEADER, CHARGED_HEADER, HELD_HEADER, REQUEST_ID_HEADER};
use rmcp::model::CallToolResult;
use serde_json::Value;

use super::document::{Document, Json};
use super::payment::{CalledTool, Payment, with_challenges, with_offers};
use super::receipt;
use crate::error::{ClientError, Refusal};
use crate::response::header;
use crate::transport::Unreachable;

/// The largest response that is passed on, in bytes. A result contains it twice, and its reader is a model.
pub(super) const RESULT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The maximum length of an explanatory text, in bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// There was no response, or the service returned an error.
    Client(ClientError),
    /// Reading the body failed. The headers contain the call's charge.
    Body(ClientError, HeaderMap),
    /// The response is larger than [`RESULT_BYTES_MAX`].
    TooLarge(HeaderMap),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl Failure {
    /// A fault of the service or of the connection to it, which the operator should know about.
    pub(super) const fn fault(&self) -> Option<&ClientError> {
        match self {
            Self::Client(ClientError::Refused(_)) | Self::TooLarge(_) => None,
            Self::Client(error) | Self::Body(error, _) => Some(error),
        }
    }

    /// The result of a call of this tool. Only local callers see causes: they may name addresses in the operator's
    /// network.
    pub(super) fn into_result(self, tool: CalledTool<'_>, payment: &Payment, is_local: bool) -> CallToolResult {
        let (document, headers) = match self {
            Self::Client(ClientError::Refused(refusal)) => (refused(&refusal, tool), refusal.headers),
            Self::Client(error) => (no_response(&error, is_local), HeaderMap::new()),
            Self::Body(error, headers) => (with_money(no_response(&error, is_local), &headers), headers),
            Self::TooLarge(headers) => (with_money(too_large(), &headers), headers),
        };
        let result = with_challenges(document.into_error(), &headers);
        receipt::complete(payment.complete(result, &headers), &headers)
    }
}

/// Adds the balance from the response headers, and the charge; while that is not known, the held amount instead, and
/// the request's id.
pub(super) fn with_money(document: Document, headers: &HeaderMap) -> Document {
    let document = document
        .with_number("credit_balance", header(headers, BALANCE_HEADER))
        .with_number("credits_charged", header(headers, CHARGED_HEADER));
    let held = header(headers, HELD_HEADER).filter(|_| !headers.contains_key(CHARGED_HEADER));
    let document = document.with_number("credits_held", held);
    match held.and(header(headers, REQUEST_ID_HEADER)) {
        Some(id) => document.with("request_id", Json::from(Value::from(id))),
        None => document,
    }
}

fn refused(refusal: &Refusal, tool: CalledTool<'_>) -> Document {
    let fits = refusal.body.len() <= RESULT_BYTES_MAX;
    let own = fits.then(|| Document::parse(&refusal.body)).flatten();
    let own = own.filter(|body| body.has_text("error") && body.has_text("message"));
    let own = own.map(|body| with_offers(body, tool, refusal.status, &refusal.headers));
    // Not the gateway's own error: the upstream or a proxy wrote it.
    let document = own.unwrap_or_else(|| {
        let document = error(truncated(&refusal.code), truncated(&refusal.message));
        if refusal.body.is_empty() { document } else { document.with("body", unknown_format(&refusal.body)) }
    });
    let document = match refusal.retry_after {
        Some(wait) => document.with("retry_after_sec", Json::from(Value::from(wait.as_secs()))),
        None => document,
    };
    with_money(document, &refusal.headers)
}

/// A body in an unknown format, such as a proxy's error page.
fn unknown_format(body: &[u8]) -> Json {
    let cut = &body[..body.len().min(TEXT_BYTES_MAX)];
    let document = if body.len() <= RESULT_BYTES_MAX { Json::parse(body) } else { None };
    document.unwrap_or_else(|| Json::or_text(cut))
}

/// A text cut to a length that is useful to an agent.
fn truncated(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

fn no_response(fault: &ClientError, is_local: bool) -> Document {
    let (code, message, why) = match fault {
        ClientError::Unreachable(Unreachable(why)) => ("service_unreachable", "The request to the service failed", why),
        ClientError::Garbled(why) => ("unreadable_answer", "Could not read the service's response", why),
        ClientError::Refused(refusal) => {
            ("unreadable_answer", "Could not read the service's response", &refusal.message)
        }
    };
    let cause = if is_local { format!(" ({why})") } else { String::new() };
    error(
        code,
        &format!(
            "{message}{cause}. A metered call may have been charged: check with get_credit_balance. Try again \
             later."
        ),
    )
}

fn too_large() -> Document {
    let mebibytes = RESULT_BYTES_MAX / (1024 * 1024);
    let message = format!(
        "The response is larger than {mebibytes} MiB, too large for a tool result. Request less, or get it over HTTP \
         with the same key."
    );
    error("answer_too_large", &message)
}

fn error(code: &str, message: &str) -> Document {
    Document::new().with("error", Json::from(Value::from(code))).with("message", Json::from(Value::from(message)))
}
