//! Errors in the shape of a route.
//!
//! Only the member that the shape's clients read is replaced. Everything else is where it is in this service's own
//! document: programs that pay, or that branch on our codes, find their members in every shape.

mod kinds;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::catalogue::ErrorShape;
use crate::wire::error::ErrorBody;
use kinds::{anthropic_type, gemini_status, openai_type, title};

/// The member with our code in shapes whose `error` is something else.
const CODE_MEMBER: &str = "error_code";

impl ErrorShape {
    /// The body of an error, as JSON.
    ///
    /// ```
    /// use metering_core::catalogue::ErrorShape;
    /// use metering_core::wire::{ErrorBody, ErrorCode};
    ///
    /// let body = ErrorBody::new(ErrorCode::InsufficientCredits, "Top up.");
    /// assert_eq!(ErrorShape::Own.document(&body, None), r#"{"error":"insufficient_credits","message":"Top up."}"#);
    /// let document: serde_json::Value = serde_json::from_str(&ErrorShape::OpenAi.document(&body, None))?;
    /// assert_eq!(document["error"]["type"], "insufficient_quota");
    /// assert_eq!(document["error"]["code"], "insufficient_credits");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn document(self, error: &ErrorBody, request_id: Option<&str>) -> String {
        if self == Self::Own {
            return serialized(error);
        }
        let mut members = self.members(error, request_id);
        if self != Self::Problem {
            members.insert(CODE_MEMBER.to_owned(), error.error.as_str().into());
        }
        joined(&members, &serialized(error))
    }

    /// The error as the last event of a stream of server-sent events. `None` for a shape whose clients expect none.
    ///
    /// ```
    /// use metering_core::catalogue::ErrorShape;
    /// use metering_core::wire::{ErrorBody, ErrorCode};
    ///
    /// let body = ErrorBody::new(ErrorCode::ShuttingDown, "Try again.");
    /// let event = ErrorShape::Anthropic.event(&body, Some("req_1")).unwrap_or_default();
    /// assert!(event.starts_with("event: error\ndata: {"));
    /// assert!(event.contains(r#""type":"overloaded_error""#));
    /// ```
    #[must_use]
    pub fn event(self, error: &ErrorBody, request_id: Option<&str>) -> Option<String> {
        let name = match self {
            Self::Own => return None,
            // Their clients look at the data alone.
            Self::OpenAi | Self::Gemini => "",
            Self::Anthropic | Self::Problem => "event: error\n",
        };
        let mut members = self.members(error, request_id);
        if self == Self::Problem {
            members.insert("error".to_owned(), error.error.as_str().into());
        }
        // JSON on one line: line breaks in texts are escaped.
        Some(format!("{name}data: {}\n\n", Value::Object(members)))
    }

    /// The members that clients of this shape read.
    fn members(self, error: &ErrorBody, request_id: Option<&str>) -> Map<String, Value> {
        let (code, status, message) = (error.error.as_str(), error.error.status(), error.message.as_str());
        let members = match self {
            Self::Own => Value::Null,
            Self::OpenAi => json!({"error": {
                "message": message, "type": openai_type(status), "param": only_field(error), "code": code,
            }}),
            Self::Anthropic => json!({
                "type": "error",
                "error": {"type": anthropic_type(status), "message": message, "code": code},
                "request_id": request_id,
            }),
            Self::Gemini => json!({"error": {
                "code": status, "message": message, "status": gemini_status(status),
                "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code.to_ascii_uppercase()}],
            }}),
            Self::Problem => {
                json!({"type": "about:blank", "title": title(status), "status": status, "detail": message})
            }
        };
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

/// The field that is wrong, if it is one.
fn only_field(error: &ErrorBody) -> Option<&str> {
    let fields = error.fields.as_ref().filter(|fields| fields.len() == 1)?;
    fields.keys().next().map(String::as_str)
}

fn serialized(error: &ErrorBody) -> String {
    serde_json::to_string(error).unwrap_or_else(|error| {
        tracing::error!(%error, "could not serialize an error as JSON");
        "{}".to_owned()
    })
}

/// These members, and the members of `own` with other names. Numbers of `own` keep their digits: amounts have more than
/// a double can hold.
fn joined(members: &Map<String, Value>, own: &str) -> String {
    let rest: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(own).unwrap_or_default();
    let first = members.iter().map(|(name, value)| (name.as_str(), value.to_string()));
    let rest = rest.iter().filter(|(name, _)| !members.contains_key(*name));
    let all = first.chain(rest.map(|(name, value)| (name.as_str(), value.get().to_owned())));
    let all: Vec<_> = all.map(|(name, value)| format!("{}:{value}", Value::from(name))).collect();
    format!("{{{}}}", all.join(","))
}

#[cfg(test)]
mod tests;
