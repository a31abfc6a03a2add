//! A day or a month of the calendar, as statements are for.

use std::fmt;
use std::str::FromStr;

use super::{Day, Month, Timestamp};

/// A day or a month in UTC. Displayed as `YYYY-MM-DD` or `YYYY-MM`.
///
/// ```
/// use metering_core::clock::CalendarPeriod;
///
/// let month: CalendarPeriod = "2026-11".parse()?;
/// assert_eq!(month.start().to_string(), "2026-11-01T00:00:00.000Z");
/// assert_eq!(month.end().to_string(), "2026-12-01T00:00:00.000Z");
/// assert_eq!("2026-11-21".parse::<CalendarPeriod>()?.end().to_string(), "2026-11-22T00:00:00.000Z");
/// # Ok::<(), metering_core::clock::CalendarPeriodError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CalendarPeriod {
    /// A day.
    Day(Day),
    /// A month.
    Month(Month),
}

/// The text is neither a day nor a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a day such as 2026-11-21, or a month such as 2026-11")]
pub struct CalendarPeriodError;

impl CalendarPeriod {
    /// Its first instant.
    #[must_use]
    pub fn start(self) -> Timestamp {
        match self {
            Self::Day(day) => day.start(),
            Self::Month(month) => month.start(),
        }
    }

    /// The first instant after it.
    #[must_use]
    pub fn end(self) -> Timestamp {
        match self {
            Self::Day(day) => Day::from_unix_days(day.unix_days().saturating_add(1)).start(),
            Self::Month(month) => month.next().start(),
        }
    }
}

impl FromStr for CalendarPeriod {
    type Err = CalendarPeriodError;

    fn from_str(text: &str) -> Result<Self, CalendarPeriodError> {
        let day = |text: &str| text.parse::<Day>().map_err(|_| CalendarPeriodError);
        if text.len() == "2026-11".len() {
            return day(&format!("{text}-01")).map(|first| Self::Month(first.month()));
        }
        day(text).map(Self::Day)
    }
}

impl fmt::Display for CalendarPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Day(day) => day.fmt(f),
            Self::Month(month) => month.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_one_spelling() {
        for text in ["2026-11", "2026-11-30", "1970-01"] {
            assert_eq!(text.parse::<CalendarPeriod>().unwrap().to_string(), text);
        }
        for text in ["", "2026", "2026-13", "2026-00", "2026-1", "2026-11-31", "2026-11-", "26-1-01", " 2026-1"] {
            assert_eq!(text.parse::<CalendarPeriod>(), Err(CalendarPeriodError), "{text}");
        }
    }
}
