//! A schema or an example as the catalogue's author wrote it.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;
use serde_json::value::RawValue;

/// JSON of the catalogue: its value, and its text with the members of objects in the author's order. [`Value`] sorts them.
///
/// ```
/// use metering_core::Catalogue;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [{"path": "/price", "method": "GET", "metered": true,
///         "example": {"usd": "1.5", "at": 7}}]}"#,
/// )?;
/// let example = catalogue.routes()[0].example.as_ref().ok_or("no example")?;
/// assert_eq!(example.text(), r#"{"usd":"1.5","at":7}"#);
/// assert_eq!(example.value()["at"], 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText {
    value: Value,
    text: Arc<str>,
}

impl JsonText {
    /// The value.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// The text, without white space between tokens.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        // Limits the depth, too.
        let value = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self { value, text: without_white_space(raw.get()).into() })
    }
}

/// Valid JSON without white space between its tokens.
fn without_white_space(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for character in json.chars() {
        if in_string {
            in_string = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            in_string = character == '"';
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_strings_stay_and_white_space_goes() {
        // text, without white space
        let table = [
            (r#" { "b" : 1 , "a" : [ 2 ,3 ] } "#, r#"{"b":1,"a":[2,3]}"#),
            (r#"{"a b": " \" , : ", "c": "\\"  }"#, r#"{"a b":" \" , : ","c":"\\"}"#),
            ("[ ]", "[]"),
            ("  null ", "null"),
            ("\"\\\\\\\" x\" ", "\"\\\\\\\" x\""),
        ];
        for (json, text) in table {
            let read: JsonText = serde_json::from_str(json).unwrap();
            assert_eq!(read.text(), text);
            assert_eq!(*read.value(), serde_json::from_str::<Value>(json).unwrap());
        }
    }
}
