//! A length of time, written as `15s`, `500ms` or `2m`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(Duration);

impl Span {
    /// So many seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The length.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match humantime::parse_duration(&text) {
            Ok(duration) if !duration.is_zero() => Ok(Self(duration)),
            _ => Err(serde::de::Error::custom(format_args!("{text:?} is not a length of time such as 15s or 500ms"))),
        }
    }
}
