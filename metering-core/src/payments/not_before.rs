//! The oldest payment that is accepted: a block, or a time.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::Timestamp;

/// The oldest payment that a service accepts on a chain.
///
/// ```
/// use metering_core::payments::NotBefore;
///
/// assert_eq!("19000000".parse(), Ok(NotBefore::Block(19_000_000)));
/// assert_eq!("2026-11-21T12:00:00Z".parse::<NotBefore>()?.to_string(), "2026-11-21T12:00:00.000Z");
/// # Ok::<(), metering_core::payments::NotBeforeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotBefore {
    /// Payments in this block and later ones.
    Block(u64),
    /// Payments mined at this time or later.
    Time(Timestamp),
}

/// The text names neither a block nor a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a block number such as 19000000, or a time such as \"2026-11-21T12:00:00Z\"")]
pub struct NotBeforeError;

impl fmt::Display for NotBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(number) => write!(f, "block {number}"),
            Self::Time(time) => fmt::Display::fmt(time, f),
        }
    }
}

impl FromStr for NotBefore {
    type Err = NotBeforeError;

    fn from_str(text: &str) -> Result<Self, NotBeforeError> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Block(number));
        }
        let time: jiff::Timestamp = text.parse().map_err(|_| NotBeforeError)?;
        Ok(Self::Time(Timestamp::from_unix_millis(time.as_millisecond())))
    }
}

impl Serialize for NotBefore {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Block(number) => serializer.serialize_u64(*number),
            Self::Time(time) => serializer.collect_str(time),
        }
    }
}

impl<'de> Deserialize<'de> for NotBefore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NotBeforeVisitor)
    }
}

struct NotBeforeVisitor;

impl Visitor<'_> for NotBeforeVisitor {
    type Value = NotBefore;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block number, or a time as a string such as \"2026-11-21T12:00:00Z\"")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<NotBefore, E> {
        Ok(NotBefore::Block(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<NotBefore, E> {
        u64::try_from(number).map(NotBefore::Block).map_err(|_| E::custom(NotBeforeError))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NotBefore, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    #[test]
    fn blocks_and_times_are_read_and_written() {
        // text, its display form if it is valid
        let table = [
            ("0", Some("block 0")),
            ("19000000", Some("block 19000000")),
            ("2026-11-21T12:00:00Z", Some("2026-11-21T12:00:00.000Z")),
            ("2026-11-21T13:00:00.5+01:00", Some("2026-11-21T12:00:00.500Z")),
            ("", None),
            ("-1", None),
            ("0x10", None),
            ("yesterday", None),
            ("2026-11-21", None),
        ];
        for (text, shown) in table {
            let read = text.parse::<NotBefore>().ok().map(|read| read.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
        let json = |text: &str| serde_json::from_str::<NotBefore>(text).ok();
        assert_eq!(json("17"), Some(NotBefore::Block(17)));
        assert_eq!(json("\"17\""), Some(NotBefore::Block(17)));
        assert_eq!(json("\"2026-11-21T12:00:00Z\""), Some(NotBefore::Time(NOON)));
        assert_eq!((json("-1"), json("1.5"), json("null")), (None, None, None));
        for read in [NotBefore::Block(17), NotBefore::Time(NOON)] {
            assert_eq!(json(&serde_json::to_string(&read).unwrap()), Some(read));
        }
    }
}
