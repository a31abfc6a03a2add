//! Credits exactly as the service wrote them. Displayed amounts are never computed, so no digit is lost.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Amounts have at most this many decimal places.
const DECIMALS: usize = 10;

/// A decimal number of a JSON document, kept as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Amount(String);

impl Amount {
    /// Whether it is zero or below.
    pub(crate) fn is_used_up(&self) -> bool {
        self.0.starts_with('-') || !self.0.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
    }

    /// The amount in its smallest decimal unit, for comparisons and estimates; further digits are cut off, and
    /// out-of-range amounts are clamped.
    pub(crate) fn units(&self) -> i128 {
        let (sign, digits) = self.0.strip_prefix('-').map_or((1_i128, &*self.0), |digits| (-1, digits));
        let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.get(..DECIMALS).unwrap_or(fraction);
        format!("{integer}{fraction:0<DECIMALS$}").parse().unwrap_or(i128::MAX) * sign
    }

    /// The amount as a change of the balance: with a plus if it is above zero.
    pub(crate) fn signed(&self) -> String {
        if self.is_used_up() { self.0.clone() } else { format!("+{}", self.0) }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) || text.contains(['e', 'E']) {
            return Err(serde::de::Error::custom("an amount of credits must be a decimal number"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.clone()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_survives() {
        for text in ["0", "-0.0000694444", "123456789012345678.1234567891", "2"] {
            let amount: Amount = serde_json::from_str(text).unwrap();
            assert_eq!((amount.to_string().as_str(), serde_json::to_string(&amount).unwrap().as_str()), (text, text));
        }
    }

    #[test]
    fn only_an_amount_above_zero_gets_a_plus() {
        for (text, signed) in [("2", "+2"), ("0.0000000001", "+0.0000000001"), ("0", "0"), ("-1", "-1")] {
            assert_eq!(serde_json::from_str::<Amount>(text).unwrap().signed(), signed);
        }
    }

    #[test]
    fn units_are_signed_and_bounded() {
        let table = [("1.5", 15_000_000_000), ("-0.0000694444", -694_444), ("0.00000000019", 1), ("2", 20_000_000_000)];
        for (text, units) in table {
            assert_eq!(serde_json::from_str::<Amount>(text).unwrap().units(), units, "{text}");
        }
        let absurd: Amount = serde_json::from_str(&"9".repeat(60)).unwrap();
        assert_eq!(absurd.units(), i128::MAX);
    }

    #[test]
    fn non_decimal_numbers_are_rejected() {
        for text in ["\"1\"", "null", "[1]", "1e5", "true"] {
            assert!(serde_json::from_str::<Amount>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn zero_and_below_are_used_up() {
        let table = [("0", true), ("0.0", true), ("-0.1", true), ("0.0000000001", false), ("10", false)];
        for (text, used_up) in table {
            assert_eq!(serde_json::from_str::<Amount>(text).unwrap().is_used_up(), used_up, "{text}");
        }
    }
}
