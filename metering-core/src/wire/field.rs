//! Request fields with special parsing.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::money::credits::Credits;

/// A field that is present, even if it is null.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

pub(super) fn present_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Credits>>, D::Error> {
    amount(deserializer).map(Some)
}

/// Text; null is as good as nothing.
pub(super) fn text_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a field is true: `true`, or the text of forms.
pub(super) fn is_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(matches!(raw.get().trim_matches('"'), "true" | "True" | "on" | "1"))
}

/// An amount of credits as text or as a number, read exactly.
pub(super) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Credits>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let text = match raw.get() {
        "null" => return Ok(None),
        text if text.starts_with('"') => serde_json::from_str(text).map_err(serde::de::Error::custom)?,
        number => number.to_owned(),
    };
    let wrong = |problem| serde::de::Error::custom(format_args!("an amount of credits such as \"0.5\": {problem}"));
    text.trim().parse().map(Some).map_err(wrong)
}
