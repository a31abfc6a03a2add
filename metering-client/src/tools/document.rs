//! JSON documents that keep their numbers exact: the text is byte for byte what the service wrote.
//!
//! A structured result is a tree of values, in which a number beyond double precision is rounded. The text next to it
//! is assembled from the original text, so the agent reads exact numbers.

use std::fmt;

use metering_core::wire::ErrorBody;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// How deeply a value may be nested. Clients parse it inside a message, and some fail at 128 levels in total.
const DEPTH_MAX: usize = 100;

/// A JSON value and its text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Json {
    text: String,
    value: Value,
}

/// A JSON object to which members can be appended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    /// The text without its closing brace.
    open_text: String,
    members: JsonObject,
}

impl Json {
    /// Parses `bytes`, keeping their text, if they are JSON.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let value = serde_json::from_slice(bytes).ok().filter(|value| is_shallow(value, DEPTH_MAX))?;
        let text = std::str::from_utf8(bytes).ok()?.trim().to_owned();
        Some(Self { text, value })
    }

    /// Parses `bytes` as JSON, or else as text. An empty body is `null`.
    pub(super) fn or_text(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::from(Value::Null);
        }
        Self::parse(bytes).unwrap_or_else(|| Self::from(Value::from(String::from_utf8_lossy(bytes))))
    }

    /// A list of documents.
    pub(super) fn list(items: Vec<Self>) -> Self {
        let mut text = "[".to_owned();
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            text.push_str(if values.is_empty() { "" } else { "," });
            text.push_str(&item.text);
            values.push(item.value);
        }
        text.push(']');
        Self { text, value: values.into() }
    }
}

fn is_shallow(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_shallow(item, below)),
        Value::Object(members) => members.values().all(|member| is_shallow(member, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self { text: value.to_string(), value }
    }
}

impl From<Document> for Json {
    fn from(document: Document) -> Self {
        Self { text: document.open_text + "}", value: document.members.into() }
    }
}

impl Document {
    pub(super) fn new() -> Self {
        Self { open_text: "{".to_owned(), members: JsonObject::new() }
    }

    /// Parses `bytes`, if they are a JSON object.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let Json { text, value: Value::Object(members) } = Json::parse(bytes)? else { return None };
        let open_text = text.strip_suffix('}')?.trim_end().to_owned();
        Some(Self { open_text, members })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    pub(super) fn has_text(&self, name: &str) -> bool {
        self.members.get(name).is_some_and(Value::is_string)
    }

    /// Appends a member. Does nothing if the name is taken: the service's own value wins.
    #[must_use]
    pub(super) fn with(mut self, name: &str, json: impl Into<Json>) -> Self {
        if self.has(name) {
            return self;
        }
        let Json { text, value } = json.into();
        let separator = if self.members.is_empty() { "" } else { "," };
        self.open_text.push_str(&format!("{separator}{}:", Value::from(name)));
        self.open_text.push_str(&text);
        self.members.insert(name.to_owned(), value);
        self
    }

    /// The document without these members; the others keep their order and their text.
    #[must_use]
    pub(super) fn without(self, names: &[&str]) -> Self {
        if !names.iter().any(|name| self.has(name)) {
            return self;
        }
        let text = format!("{}}}", self.open_text);
        let Ok(Members(members)) = serde_json::from_str(&text) else { return self };
        let kept = members.into_iter().filter(|(name, _)| !names.contains(&name.as_str()));
        kept.fold(Self::new(), |document, (name, raw)| document.with(&name, Json::or_text(raw.get().as_bytes())))
    }

    /// Appends a number exactly as written, if `text` is given and is a number.
    #[must_use]
    pub(super) fn with_number(self, name: &str, text: Option<&str>) -> Self {
        match text.and_then(|text| Json::parse(text.as_bytes())).filter(|json| json.value.is_number()) {
            Some(number) => self.with(name, number),
            None => self,
        }
    }

    /// The result of a call that succeeded.
    pub(super) fn into_result(self) -> CallToolResult {
        let Json { text, value } = self.into();
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(value);
        result
    }

    /// The result of a call that failed.
    pub(super) fn into_error(self) -> CallToolResult {
        let mut result = self.into_result();
        result.is_error = Some(true);
        result
    }
}

/// The members of an object, in its order, as their texts.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// An error as the service would write it.
impl From<&ErrorBody> for Document {
    fn from(body: &ErrorBody) -> Self {
        let text = serde_json::to_vec(body).expect("all map keys of an error body are strings");
        Self::parse(&text).expect("an error body is an object")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: impl Into<Json>) -> String {
        json.into().text
    }

    #[test]
    fn texts_are_kept_to_the_byte() {
        // bytes, text
        let table: [(&[u8], &str); 7] = [
            (
                b" {\"a\" : 1.10,\n\"b\":123456789012345678901234567890} ",
                "{\"a\" : 1.10,\n\"b\":123456789012345678901234567890}",
            ),
            (b"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
            (b"[1e5]", "[1e5]"),
            (b"", "null"),
            (b"plain \"words\"", r#""plain \"words\"""#),
            (b"\xff", "\"\u{fffd}\""),
            (b"{\"cut\":", r#""{\"cut\":""#),
        ];
        for (bytes, expected) in table {
            assert_eq!(text(Json::or_text(bytes)), expected);
        }
    }

    #[test]
    fn members_are_added_at_the_end_and_never_twice() {
        let seven = || Json::from(Value::from(7));
        // start, text with "n" added
        let table: [(&str, &str); 4] = [
            ("{}", r#"{"n":7}"#),
            ("{ }", r#"{"n":7}"#),
            (r#"{"a":1.0 }"#, r#"{"a":1.0,"n":7}"#),
            (r#"{"n":1.0}"#, r#"{"n":1.0}"#),
        ];
        for (start, expected) in table {
            let document = Document::parse(start.as_bytes()).unwrap().with("n", seven());
            assert_eq!(serde_json::from_str::<JsonObject>(expected).unwrap(), document.members, "{start}");
            assert_eq!(text(document), expected, "{start}");
        }
        for no_object in ["", "[]", "1", "{", "{}{}"] {
            assert_eq!(Document::parse(no_object.as_bytes()), None, "{no_object}");
        }
    }

    #[test]
    fn members_are_removed_and_the_others_keep_their_text() {
        let without = |text: &str| self::text(Document::parse(text.as_bytes()).unwrap().without(&["x", "y"]));
        for (start, expected) in [
            (r#"{"b":1.10,"x":[1, {"y":2}],"a":{"y": 1}}"#, r#"{"b":1.10,"a":{"y": 1}}"#),
            (r#"{"y":1}"#, "{}"),
            (r#"{ "b" : 1.10 }"#, r#"{ "b" : 1.10}"#),
        ] {
            assert_eq!(without(start), expected, "{start}");
        }
    }

    #[test]
    fn only_numbers_are_added_as_numbers() {
        for (given, expected) in [
            (Some("1.9998611111"), r#"{"n":1.9998611111}"#),
            (Some("-0.0001388889"), r#"{"n":-0.0001388889}"#),
            (Some("\"7\""), "{}"),
            (Some("1,\"x\":2"), "{}"),
            (Some("NaN"), "{}"),
            (None, "{}"),
        ] {
            assert_eq!(text(Document::new().with_number("n", given)), expected);
        }
    }
}
