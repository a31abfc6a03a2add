//! A facilitator's handling of a payment's extensions: the header `EXTENSION-RESPONSES`
//! (`specs/x402-specification-v2.md`, "Extension Responses Sidechannel"). It is for the service alone.

use serde_json::Value;

use crate::wire::fields::Base64;

/// The header with the outcomes.
pub const EXTENSION_RESPONSES_HEADER: &str = "extension-responses";

/// The outcome of one extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionOutcome {
    /// Its name.
    pub extension: String,
    /// `success`, `processing` or `rejected`, or a word that the extension's specification adds.
    pub status: String,
    /// Why it was rejected.
    pub reason: Option<String>,
}

impl ExtensionOutcome {
    /// Reads the header. Unreadable parts are left out: nothing depends on them.
    ///
    /// ```
    /// use metering_pay::wire::x402::ExtensionOutcome;
    ///
    /// let outcomes = ExtensionOutcome::read("eyJiYXphYXIiOnsic3RhdHVzIjoic3VjY2VzcyJ9fQ==");
    /// assert_eq!((outcomes[0].extension.as_str(), outcomes[0].status.as_str()), ("bazaar", "success"));
    /// ```
    #[must_use]
    pub fn read(header: &str) -> Vec<Self> {
        let Ok(Value::Object(members)) = Base64::Standard.decode_json("EXTENSION-RESPONSES", header) else {
            return Vec::new();
        };
        let outcome = |(extension, value): (String, Value)| {
            let text = |name| value.get(name).and_then(Value::as_str).map(str::to_owned);
            Some(Self { status: text("status")?, reason: text("rejectedReason"), extension })
        };
        members.into_iter().filter_map(outcome).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::vectors::header_of;

    #[test]
    fn outcomes_are_read_and_nonsense_is_left_out() {
        let header = header_of(&json!({
            "bazaar": {"status": "rejected", "rejectedReason": "info failed schema validation"},
            "other": {"status": 7}, "more": "x",
        }));
        let outcomes = ExtensionOutcome::read(&header);
        assert_eq!((outcomes.len(), outcomes[0].status.as_str()), (1, "rejected"));
        assert_eq!(outcomes[0].reason.as_deref(), Some("info failed schema validation"));
        for none in ["", "!", "e30=", &header_of(&json!([1]))] {
            assert!(ExtensionOutcome::read(none).is_empty(), "{none}");
        }
    }
}
