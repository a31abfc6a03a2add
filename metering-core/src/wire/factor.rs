//! Weights and multipliers that resolvers send.
//!
//! The resolver has served the request by then, so an unusable value must not fail the deduction: it counts as 1, and
//! is logged.

use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::money::decimal::{DecimalError, parse_rounded};

/// How many characters of an unusable value are logged.
const KEPT_CHARS: usize = 40;

/// The replacement for an unusable value.
const UNUSABLE: &str = "unusable";

/// A factor of a price, above 0: a JSON number with any number of digits, or text that has one.
///
/// ```
/// use metering_core::wire::Factor;
///
/// let read = |json: &str| serde_json::from_str::<Factor>(json);
/// assert_eq!(read("2.5")?, "2.5".parse()?);
/// assert_eq!(read("\"2.5\"")?, "2.5".parse()?);
/// let zero = read("0")?;
/// assert_eq!((zero.value(), zero.unusable()), ("1".parse()?, Some("0")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    value: Decimal,
    unusable: Option<Box<str>>,
}

impl Factor {
    /// The value: above 0, and 1 for one that cannot be used. A number that is too large is the largest that can be
    /// represented; digits beyond the 28th are rounded.
    #[must_use]
    pub const fn value(&self) -> Decimal {
        self.value
    }

    /// The received value, shortened, if it cannot be used: it is not a number, or not above 0.
    #[must_use]
    pub fn unusable(&self) -> Option<&str> {
        self.unusable.as_deref()
    }

    /// Reads a JSON value.
    fn of_json(json: &str) -> Self {
        let text = if json.starts_with('"') { serde_json::from_str::<String>(json).ok() } else { None };
        let text = text.as_deref().unwrap_or(json).trim();
        match parse_rounded(text.strip_prefix('+').unwrap_or(text)) {
            Ok(value) if value > Decimal::ZERO => Self { value, unusable: None },
            _ => Self { value: Decimal::ONE, unusable: Some(json.chars().take(KEPT_CHARS).collect()) },
        }
    }
}

impl FromStr for Factor {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let value = parse_rounded(text)?;
        if value > Decimal::ZERO { Ok(Self { value, unusable: None }) } else { Err(DecimalError::OutOfRange) }
    }
}

/// A usable factor is a number. Unusable text, unlike a shortened number, is not usable either.
impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.unusable {
            // Not the received value: a shortened number may be usable.
            Some(_) => serializer.serialize_str(UNUSABLE),
            None => {
                RawValue::from_string(self.value.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|json| Self::of_json(json.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_one() {
        // JSON, value, whether it can be used
        let table = [
            ("1", "1", true),
            ("0.123456789", "0.123456789", true),
            ("\"72\"", "72", true),
            ("\" +0.5 \"", "0.5", true),
            ("1e2", "100", true),
            ("1e999", "79228162514264337593543950335", true),
            ("99999999999999999999999999999999", "79228162514264337593543950335", true),
            ("0", "1", false),
            ("-1", "1", false),
            ("1e-400", "1", false),
            ("\"\"", "1", false),
            ("\"much\"", "1", false),
            ("\"nan\"", "1", false),
            ("[1]", "1", false),
            ("{}", "1", false),
        ];
        // Its first characters alone are 1.
        let too_small = format!("1.{}e-400", "0".repeat(42));
        for (json, value, usable) in table.into_iter().chain([(too_small.as_str(), "1", false)]) {
            let factor: Factor = serde_json::from_str(json).unwrap();
            assert_eq!((factor.value(), factor.unusable().is_none()), (value.parse().unwrap(), usable), "{json}");
            let written = serde_json::to_string(&factor).unwrap();
            let read: Factor = serde_json::from_str(&written).unwrap();
            assert_eq!((read.value(), read.unusable().is_none()), (factor.value(), usable), "{json}: {written}");
        }
        assert_eq!(Factor::of_json(&format!("\"{}\"", "x".repeat(99))).unusable().unwrap().len(), KEPT_CHARS);
        let digits = format!("0.{}", "3".repeat(60));
        assert!(Factor::of_json(&digits).unusable().is_none());
    }
}
