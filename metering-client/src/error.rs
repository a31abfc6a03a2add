//! Why a request failed.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;

use crate::transport::Unreachable;

/// Why a request failed.
///
/// Exhaustive on purpose: a caller that pays must decide for each of these whether to send its request again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The service returned an error.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The service did not respond, or its response broke off.
    #[error("the request to the service failed: {0}")]
    Unreachable(#[from] Unreachable),
    /// The response does not follow the protocol; the text explains how.
    #[error("could not read the service's response: {0}")]
    Garbled(String),
}

/// An error that the service returned.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message} ({code})")]
pub struct Refusal {
    /// The HTTP status.
    pub status: StatusCode,
    /// The stable code, such as `insufficient_credits`; `http_NNN` if the body has none.
    pub code: String,
    /// One sentence that explains to a person what to do.
    pub message: String,
    /// How long to wait before a retry, if the service sends that.
    pub retry_after: Option<Duration>,
    /// The headers of the response; they contain the request's charge, if any.
    pub headers: http::HeaderMap,
    /// The whole body: JSON, unless a proxy on the way wrote it.
    pub body: Bytes,
}

/// The fields that are read from an error's body.
#[derive(Deserialize)]
struct Body {
    error: String,
    message: String,
    retry_after_sec: Option<u64>,
}

impl Refusal {
    /// Reads an error response.
    #[must_use]
    pub fn read(status: StatusCode, headers: &http::HeaderMap, body: Bytes) -> Self {
        // RFC 9110, section 10.2.3. The protocol always uses the form in seconds.
        let header = headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let header = header.and_then(|text| text.trim().parse().ok());
        let read: Option<Body> = serde_json::from_slice(&body).ok();
        let (code, message, seconds) = match read {
            Some(Body { error, message, retry_after_sec }) => (error, message, header.or(retry_after_sec)),
            None => {
                let reason = status.canonical_reason().unwrap_or("(unknown status)");
                (
                    format!("http_{}", status.as_u16()),
                    format!("The service responded with {} {reason}.", status.as_u16()),
                    header,
                )
            }
        };
        Self { status, code, message, retry_after: seconds.map(Duration::from_secs), headers: headers.clone(), body }
    }

    /// A field of the body as text: a string without its quotes, anything else as written.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        let fields: std::collections::BTreeMap<&str, &serde_json::value::RawValue> =
            serde_json::from_slice(&self.body).ok()?;
        let raw = fields.get(name)?.get();
        Some(serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()))
    }
}

impl From<Refusal> for ClientError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl ClientError {
    /// The code of the service's error, if the service returned one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.code),
            Self::Unreachable(_) | Self::Garbled(_) => None,
        }
    }

    /// How long to wait before a retry, if the service sends that.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::Unreachable(_) | Self::Garbled(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &'static str, retry_after: Option<&'static str>) -> Refusal {
        let mut headers = http::HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert("retry-after", value.parse().unwrap());
        }
        Refusal::read(StatusCode::TOO_MANY_REQUESTS, &headers, Bytes::from_static(body.as_bytes()))
    }

    #[test]
    fn protocol_error_is_read_and_other_errors_use_the_status() {
        // body, header, code, seconds
        let table = [
            (r#"{"error":"rate_limited","message":"Wait.","retry_after_sec":7}"#, None, "rate_limited", Some(7)),
            (r#"{"error":"rate_limited","message":"Wait.","retry_after_sec":7}"#, Some("9"), "rate_limited", Some(9)),
            (r#"{"error":"rate_limited","message":"Wait."}"#, None, "rate_limited", None),
            ("<html>busy</html>", Some("3"), "http_429", Some(3)),
            ("", Some("Wed, 21 Oct 2026 07:28:00 GMT"), "http_429", None),
        ];
        for (body, header, code, seconds) in table {
            let refusal = read(body, header);
            assert_eq!(refusal.code, code, "{body}");
            assert_eq!(refusal.retry_after, seconds.map(Duration::from_secs), "{body}");
        }
    }

    #[test]
    fn fields_are_returned_as_sent() {
        let refusal =
            read(r#"{"error":"x","message":"y","credit_balance":-0.0000694444,"plans_url":"/credits"}"#, None);
        assert_eq!(refusal.field("credit_balance").as_deref(), Some("-0.0000694444"));
        assert_eq!(refusal.field("plans_url").as_deref(), Some("/credits"));
        assert_eq!(refusal.field("absent"), None);
        assert_eq!(read("no JSON", None).field("error"), None);
    }
}
