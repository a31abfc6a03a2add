//! A request as a receiver reported it, and whether the library verified it.

use serde_json::Value;

/// A request that a receiver got.
#[derive(Debug, Clone)]
pub struct Received(Value);

impl Received {
    pub(super) fn new(line: Value) -> Self {
        Self(line)
    }

    fn text_of(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    /// The method. Other than `POST`, it is never that of a webhook.
    #[must_use]
    pub fn method(&self) -> &str {
        self.text_of("method")
    }

    /// The path and query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.text_of("path")
    }

    /// `webhook-id`, or an empty string.
    #[must_use]
    pub fn id(&self) -> &str {
        self.text_of("id")
    }

    /// `webhook-timestamp` in Unix seconds, if it is a whole number.
    #[must_use]
    pub fn timestamp(&self) -> Option<i64> {
        self.text_of("timestamp").parse().ok()
    }

    /// How many signatures `webhook-signature` has.
    #[must_use]
    pub fn signatures(&self) -> usize {
        self.header("webhook-signature").split_whitespace().count()
    }

    /// A header by its name in lower case, or an empty string.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.0["headers"][name].as_str().unwrap_or_default()
    }

    /// Whether the library accepts it with one of the receiver's secrets.
    #[must_use]
    pub fn verified(&self) -> bool {
        self.0["verified"].as_bool().unwrap_or_default()
    }

    /// Which of the receiver's secrets it is signed with, counted from 0.
    #[must_use]
    pub fn secret(&self) -> Option<u64> {
        self.0["secret"].as_u64()
    }

    /// Why the library rejects it, or an empty string.
    #[must_use]
    pub fn error(&self) -> &str {
        self.text_of("error")
    }

    /// The body as JSON, or null.
    #[must_use]
    pub fn body(&self) -> &Value {
        &self.0["body"]
    }

    /// The body as it came.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text_of("text")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_without_headers_or_json_is_read() {
        let received = Received::new(json!({
            "method": "GET", "path": "/", "id": null, "timestamp": null, "headers": {}, "verified": false,
            "secret": null, "error": "Missing required headers", "body": null, "text": "no JSON",
        }));
        assert_eq!(
            (received.id(), received.timestamp(), received.signatures(), received.secret()),
            ("", None, 0, None)
        );
        assert_eq!((received.body(), received.text()), (&Value::Null, "no JSON"));
        assert!(!received.verified());
    }
}
