//! The required depth of a block: a number of confirmations, or one of the chain's own block tags.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What `confirmations` and `finality` accept.
const EXPECTED: &str = "a number of confirmations from 1, \"safe\" or \"finalized\"";

/// When a block counts as confirmed, or as final.
///
/// ```
/// use metering_evm::Finality;
///
/// assert_eq!("safe".parse(), Ok(Finality::Safe));
/// assert_eq!("12".parse::<Finality>()?.to_string(), "12");
/// # Ok::<(), metering_evm::FinalityError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finality {
    /// At this number of confirmations, its own block included.
    Confirmations(NonZeroU32),
    /// Once the chain calls it `safe`: attested, and not reverted while a majority of validators is honest.
    Safe,
    /// Once the chain calls it `finalized`: reverting it would burn a third of the stake.
    Finalized,
}

/// The text is not a valid finality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be {EXPECTED}")]
pub struct FinalityError;

impl Finality {
    /// How many confirmations clients should expect. For `safe` and `finalized` this is an estimate based on Ethereum's
    /// epochs of 32 blocks.
    ///
    /// ```
    /// use metering_evm::Finality;
    ///
    /// assert_eq!("12".parse::<Finality>()?.confirmations_hint(), 12);
    /// assert_eq!(Finality::Finalized.confirmations_hint(), 64);
    /// # Ok::<(), metering_evm::FinalityError>(())
    /// ```
    #[must_use]
    pub const fn confirmations_hint(self) -> u32 {
        match self {
            Self::Confirmations(count) => count.get(),
            Self::Safe => 32,
            Self::Finalized => 64,
        }
    }

    /// The block tag of the execution APIs that names the newest such block; `None` for a number.
    pub(crate) const fn tag(self) -> Option<&'static str> {
        match self {
            Self::Confirmations(_) => None,
            Self::Safe => Some("safe"),
            Self::Finalized => Some("finalized"),
        }
    }
}

impl FromStr for Finality {
    type Err = FinalityError;

    fn from_str(text: &str) -> Result<Self, FinalityError> {
        match text.trim() {
            "safe" => Ok(Self::Safe),
            "finalized" => Ok(Self::Finalized),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map(Self::Confirmations).map_err(|_| FinalityError)
            }
            _ => Err(FinalityError),
        }
    }
}

impl fmt::Display for Finality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confirmations(count) => fmt::Display::fmt(count, f),
            Self::Safe => f.write_str("safe"),
            Self::Finalized => f.write_str("finalized"),
        }
    }
}

impl Serialize for Finality {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Confirmations(count) => serializer.serialize_u32(count.get()),
            Self::Safe | Self::Finalized => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Finality {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FinalityVisitor)
    }
}

/// Accepts a number, and also a string, since an environment variable is always a string.
struct FinalityVisitor;

impl Visitor<'_> for FinalityVisitor {
    type Value = Finality;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<Finality, E> {
        let wrong = || E::invalid_value(Unexpected::Signed(count), &self);
        let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
        count.map(Finality::Confirmations).ok_or_else(wrong)
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Finality, E> {
        let wrong = || E::invalid_value(Unexpected::Unsigned(count), &self);
        let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
        count.map(Finality::Confirmations).ok_or_else(wrong)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Finality, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_digits_and_tags_are_read() {
        let count = |count| Finality::Confirmations(NonZeroU32::new(count).unwrap());
        // JSON, finality, hint
        let table = [
            ("1", count(1), 1),
            ("\"12\"", count(12), 12),
            ("\"safe\"", Finality::Safe, 32),
            ("\"finalized\"", Finality::Finalized, 64),
        ];
        for (json, finality, hint) in table {
            let read: Finality = serde_json::from_str(json).unwrap();
            assert_eq!(read, finality);
            assert_eq!(read.confirmations_hint(), hint);
            let again = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Finality>(&again).unwrap(), finality);
        }
    }

    #[test]
    fn everything_else_is_refused_with_what_is_expected() {
        for json in ["0", "-1", "4294967296", "1.5", "\"\"", "\"latest\"", "\"+1\"", "\"0\"", "true", "null", "[]"] {
            let error = serde_json::from_str::<Finality>(json).unwrap_err().to_string();
            assert!(error.contains(EXPECTED), "{json}: {error}");
        }
    }
}
