//! A chain id in a request: a whole number, also as `31337.0`, or a string of its decimal digits.

use rust_decimal::Decimal;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::money::decimal::parse_exact;

/// A chain's id (EIP-155).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChainIdInput(pub u64);

impl<'de> Deserialize<'de> for ChainIdInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let json = json.get();
        let expected = &"a chain's id, as a whole number or as a string of decimal digits";
        parse(json).map(Self).ok_or_else(|| D::Error::invalid_value(Unexpected::Other(json), expected))
    }
}

fn parse(json: &str) -> Option<u64> {
    if let Some(text) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)?.parse().ok();
    }
    // A chain's id is not an amount: an exponent is a mistake.
    let number: Decimal = parse_exact(json).ok().filter(|_| !json.contains(['e', 'E']))?;
    number.fract().is_zero().then_some(number)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_digits_are_the_same_id() {
        for json in ["8453", "8453.0", "8453.00", "\"8453\""] {
            assert_eq!(serde_json::from_str::<ChainIdInput>(json).unwrap(), ChainIdInput(8453));
        }
        for json in ["-1", "1.5", "1e3", "\"\"", "\"0x1\"", "\"8453.0\"", "\"+1\"", "\" 1\"", "null", "true", "[1]"] {
            assert!(serde_json::from_str::<ChainIdInput>(json).is_err(), "{json}");
        }
    }
}
