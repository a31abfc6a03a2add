//! A chain id in a request: a number, or a string of its decimal digits.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// A chain's id (EIP-155).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainIdInput(pub u64);

impl<'de> Deserialize<'de> for ChainIdInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChainIdVisitor)
    }
}

struct ChainIdVisitor;

impl Visitor<'_> for ChainIdVisitor {
    type Value = ChainIdInput;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a chain's id, as a number or as a string of decimal digits")
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<ChainIdInput, E> {
        Ok(ChainIdInput(id))
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<ChainIdInput, E> {
        u64::try_from(id).map(ChainIdInput).map_err(|_| E::invalid_value(Unexpected::Signed(id), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ChainIdInput, E> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let id = text.parse().ok().filter(|_| digits);
        id.map(ChainIdInput).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_digits_are_the_same_id() {
        for json in ["8453", "\"8453\""] {
            assert_eq!(serde_json::from_str::<ChainIdInput>(json).unwrap(), ChainIdInput(8453));
        }
        for json in ["-1", "1.5", "1e3", "\"\"", "\"0x1\"", "\"+1\"", "\" 1\"", "null", "true", "[1]"] {
            assert!(serde_json::from_str::<ChainIdInput>(json).is_err(), "{json}");
        }
    }
}
