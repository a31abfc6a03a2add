//! Durations in the configuration, written as `15s`, `500ms` or `2m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::server::text::as_text;

/// The longest duration allowed. A longer one is most likely a typo in the number or unit, and would produce dates
/// outside the usual format.
const MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// A duration above zero and of at most a hundred years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(Duration);

/// A duration, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanOrOff(Option<Span>);

/// The text is not a valid duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration such as 15s or 500ms")]
pub struct SpanError(String);

impl Span {
    /// A duration in seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl SpanOrOff {
    /// A duration in seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Some(Span::seconds(seconds)))
    }

    /// The duration; `None` for `off`.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        self.0.map(Span::duration)
    }
}

impl FromStr for SpanOrOff {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        if text == "off" { Ok(Self(None)) } else { text.parse().map(|span| Self(Some(span))) }
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        match humantime::parse_duration(text) {
            Ok(duration) if !duration.is_zero() && duration <= MAX => Ok(Self(duration)),
            _ => Err(SpanError(text.to_owned())),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl fmt::Display for SpanOrOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(span) => span.fmt(f),
            None => f.write_str("off"),
        }
    }
}

as_text!(Span, SpanOrOff);
