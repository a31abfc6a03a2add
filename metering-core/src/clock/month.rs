//! Calendar months.

use std::fmt;

use super::{Day, Timestamp};
use crate::text_traits::text_traits;

/// A calendar month in UTC, counted from January 1970. Displayed as `YYYY-MM`.
///
/// ```
/// use metering_core::Timestamp;
///
/// let month = Timestamp::from_unix_millis(1_795_248_000_005).day().month();
/// assert_eq!(month.to_string(), "2026-11");
/// assert_eq!(month.next().start().to_string(), "2026-12-01T00:00:00.000Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Month(i64);

impl Month {
    /// The month `months` months after January 1970.
    #[must_use]
    pub const fn from_unix_months(months: i64) -> Self {
        Self(months)
    }

    /// Months since January 1970.
    #[must_use]
    pub const fn unix_months(self) -> i64 {
        self.0
    }

    /// The month after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Its first instant. For a month that no calendar has (before the year -9999, after 9999), the latest one
    /// possible.
    #[must_use]
    pub fn start(self) -> Timestamp {
        let first = || {
            let year = i16::try_from(1970 + self.0.div_euclid(12)).ok()?;
            let month = i8::try_from(self.0.rem_euclid(12) + 1).ok()?;
            let first = jiff::civil::Date::new(year, month, 1).ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
            Some(Timestamp(first.timestamp().as_millisecond()))
        };
        first().unwrap_or(Timestamp(i64::MAX))
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.start().0) {
            Ok(instant) => write!(f, "{}", instant.strftime("%Y-%m")),
            Err(_) => write!(f, "month {}", self.0),
        }
    }
}

text_traits!(Month: Serialize);

impl Day {
    /// The calendar month of the day. Days that no calendar has (before the year -9999, after 9999) are in the first
    /// one, January 1970.
    #[must_use]
    pub fn month(self) -> Month {
        let date = jiff::Timestamp::from_millisecond(self.start().0);
        date.map_or(Month::default(), |start| {
            let start = start.to_zoned(jiff::tz::TimeZone::UTC);
            Month::from_unix_months((i64::from(start.year()) - 1970) * 12 + i64::from(start.month()) - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Day;

    #[test]
    fn a_day_is_in_one_month() {
        // day, month, months since January 1970
        let table = [
            ("1970-01-01", "1970-01", 0),
            ("1969-12-31", "1969-12", -1),
            ("2026-11-01", "2026-11", 682),
            ("2026-11-30", "2026-11", 682),
            ("2026-12-01", "2026-12", 683),
            ("2028-02-29", "2028-02", 697),
        ];
        for (text, month, number) in table {
            let day: Day = text.parse().unwrap();
            assert_eq!((day.month().to_string().as_str(), day.month().unix_months()), (month, number), "{text}");
            assert!(day.month().start() <= day.start() && day.start() < day.month().next().start(), "{text}");
        }
        assert_eq!(Day::from_unix_days(i64::MAX).month(), Month(0));
        assert_eq!(Month(i64::MAX).start(), Timestamp(i64::MAX));
        assert_eq!(Month(i64::MIN).to_string(), format!("month {}", i64::MIN));
    }
}
