//! A configured route weight: exact, and never zero.

use std::fmt;

use metering_core::catalogue::Weight;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A weight above 0: a whole number, or a string such as `"0.5"`. Fractional numbers are refused because TOML and JSON
/// parsers read them as floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightSetting(Weight);

impl WeightSetting {
    /// Wraps a weight; it must be above 0.
    #[must_use]
    pub const fn of(weight: Weight) -> Self {
        Self(weight)
    }

    /// The weight.
    #[must_use]
    pub const fn weight(self) -> Weight {
        self.0
    }
}

impl Serialize for WeightSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WeightSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WeightVisitor)
    }
}

struct WeightVisitor;

impl Visitor<'_> for WeightVisitor {
    type Value = WeightSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a weight as a whole number or a string such as \"0.5\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WeightSetting, E> {
        let weight: Weight = text.parse().map_err(|error| E::custom(format_args!("{text:?}: {error}")))?;
        if weight.is_zero() {
            return Err(E::custom("must be above 0"));
        }
        Ok(WeightSetting(weight))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<WeightSetting, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<WeightSetting, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_exact_and_above_zero() {
        let read = |json: &str| serde_json::from_str::<WeightSetting>(json).map(|weight| weight.weight().to_string());
        assert_eq!(read("3").unwrap(), "3");
        assert_eq!(read("\"0.000001\"").unwrap(), "0.000001");
        for wrong in ["0", "\"0\"", "-1", "0.5", "\"1001\"", "\"x\"", "true"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
