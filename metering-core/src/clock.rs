//! Instants, UTC days, calendar minutes, and the clock they come from.
//!
//! Rules take `now` as an argument; only programs read a [`Clock`]. So a test can run every rule at midnight.

mod calendar_period;
mod last_hours;
mod month;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::text_traits::text_traits;

pub use calendar_period::{CalendarPeriod, CalendarPeriodError};
pub use month::Month;

const MILLIS_PER_SECOND: i64 = 1_000;
const SECONDS_PER_MINUTE: i64 = 60;
const SECONDS_PER_DAY: i64 = 86_400;

/// A source of the current time.
///
/// In programs, use [`SystemClock`]. A test can use its own:
///
/// ```
/// use std::sync::atomic::{AtomicI64, Ordering};
///
/// use metering_core::{Clock, Timestamp};
///
/// /// A clock that a test sets, in milliseconds since the Unix epoch.
/// #[derive(Debug, Default)]
/// struct ManualClock(AtomicI64);
///
/// impl Clock for ManualClock {
///     fn now(&self) -> Timestamp {
///         Timestamp::from_unix_millis(self.0.load(Ordering::SeqCst))
///     }
/// }
///
/// let clock = ManualClock::default();
/// clock.0.store(1_795_248_000_005, Ordering::SeqCst);
/// assert_eq!(clock.now().to_string(), "2026-11-21T08:00:00.005Z");
/// ```
pub trait Clock: Send + Sync + fmt::Debug {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the only place that reads the system clock")]
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_millisecond())
    }
}

/// A lower bound on the difference between two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSkew {
    /// It is at least this far ahead.
    Ahead(Duration),
    /// It is at least this far behind.
    Behind(Duration),
}

impl ClockSkew {
    /// Larger differences are an error: rate limits, expiries and idempotency keys depend on the clock.
    pub const MAX_TOLERATED: Duration = Duration::from_secs(5);

    /// Compares this clock with a store's clock, which was read between two readings of this one, `before` and `after`.
    /// The time between these is not part of the difference. `None` when the difference is tolerated.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use metering_core::clock::ClockSkew;
    /// use metering_core::{Clock, SystemClock};
    ///
    /// let before = SystemClock.now();
    /// let stores = before.saturating_sub(Duration::from_secs(61)); // from `Store::clock`
    /// let skew = ClockSkew::found(before, stores, SystemClock.now());
    /// assert_eq!(skew.map(|skew| skew.to_string()).as_deref(), Some("61 seconds ahead"));
    /// ```
    #[must_use]
    pub fn found(before: Timestamp, stores: Timestamp, after: Timestamp) -> Option<Self> {
        let gap = |from: Timestamp, to: Timestamp| u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0);
        let (ahead, behind) = (Duration::from_millis(gap(stores, before)), Duration::from_millis(gap(after, stores)));
        if ahead > Self::MAX_TOLERATED {
            Some(Self::Ahead(ahead))
        } else {
            (behind > Self::MAX_TOLERATED).then_some(Self::Behind(behind))
        }
    }
}

impl fmt::Display for ClockSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, where_to) = match self {
            Self::Ahead(by) => (by, "ahead"),
            Self::Behind(by) => (by, "behind"),
        };
        write!(f, "{} seconds {where_to}", by.as_secs())
    }
}

/// An instant in UTC, to the millisecond. Displayed as RFC 3339, for example `2026-11-21T08:30:00.000Z`.
///
/// ```
/// use std::time::Duration;
///
/// use metering_core::Timestamp;
///
/// let at = Timestamp::from_unix_millis(1_795_248_000_005);
/// let expires_at = at.saturating_add(Duration::from_secs(15 * 60));
/// assert_eq!(expires_at.to_string(), "2026-11-21T08:15:00.005Z");
/// assert_eq!(expires_at.minute() - at.minute(), 15);
/// assert!(at < expires_at);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant `millis` milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_unix_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn unix_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(MILLIS_PER_SECOND)
    }

    /// The calendar minute of this instant, counted from the Unix epoch.
    #[must_use]
    pub const fn minute(self) -> i64 {
        self.unix_seconds().div_euclid(SECONDS_PER_MINUTE)
    }

    /// The UTC day of this instant.
    #[must_use]
    pub const fn day(self) -> Day {
        Day(self.unix_seconds().div_euclid(SECONDS_PER_DAY))
    }

    /// The instant `duration` later, or the latest one possible.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// The instant `duration` earlier, or the earliest one possible.
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }
}

/// The text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a time such as 2026-11-21T12:00:00Z")]
pub struct TimestampError;

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Reads RFC 3339, with any offset. Anything below a millisecond is cut off.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        match text.parse::<jiff::Timestamp>() {
            Ok(instant) => Ok(Self(instant.as_millisecond())),
            Err(_) => last_hours::read(text).map(Self).ok_or(TimestampError),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => match last_hours::write(self.0) {
                Some(text) => f.write_str(&text),
                None => write!(f, "{} ms since the Unix epoch", self.0),
            },
        }
    }
}

text_traits!(Timestamp: Serialize, Deserialize);

/// A UTC day, counted from 1970-01-01. Displayed as `YYYY-MM-DD`.
///
/// ```
/// use metering_core::Timestamp;
///
/// let day = Timestamp::from_unix_millis(1_795_248_000_005).day();
/// assert_eq!(day.to_string(), "2026-11-21");
/// assert_eq!(day.minus_days(21).to_string(), "2026-10-31");
/// assert_eq!(day.start().to_string(), "2026-11-21T00:00:00.000Z");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// The day `days` days after 1970-01-01.
    #[must_use]
    pub const fn from_unix_days(days: i64) -> Self {
        Self(days)
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub const fn unix_days(self) -> i64 {
        self.0
    }

    /// The first instant of the day.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(SECONDS_PER_DAY * MILLIS_PER_SECOND))
    }

    /// The day `days` earlier.
    #[must_use]
    pub fn minus_days(self, days: u32) -> Self {
        Self(self.0.saturating_sub(i64::from(days)))
    }

    /// The day's number in its month, from 1. Days that no calendar has (before the year -9999, after 9999) are the
    /// first of theirs.
    pub(crate) fn day_of_month(self) -> u8 {
        let date = jiff::Timestamp::from_millisecond(self.start().0);
        date.map_or(1, |start| start.to_zoned(jiff::tz::TimeZone::UTC).day().unsigned_abs())
    }
}

/// The text is not a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a day such as 2026-11-21")]
pub struct DayError;

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        let date: jiff::civil::Date = text.parse().map_err(|_| DayError)?;
        let day =
            date.to_zoned(jiff::tz::TimeZone::UTC).map(|start| Timestamp(start.timestamp().as_millisecond()).day());
        // One spelling per day.
        day.ok().filter(|day| day.to_string() == text).ok_or(DayError)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.start().0) {
            Ok(instant) => write!(f, "{}", instant.strftime("%Y-%m-%d")),
            Err(_) => write!(f, "day {}", self.0),
        }
    }
}

text_traits!(Day: Serialize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_one_spelling() {
        assert_eq!("1970-01-02".parse(), Ok(Day::from_unix_days(1)));
        assert_eq!("2026-11-21".parse(), Ok(Day::from_unix_days(20_778)));
        for text in ["", "2026-11-31", "2026-2-1", "20261121", "2026-11-21T00:00:00Z", "+002026-11-21", " 2026-11-21"] {
            assert_eq!(text.parse::<Day>(), Err(DayError), "{text}");
        }
    }

    #[test]
    fn instants_print_as_rfc_3339_with_milliseconds() {
        // ms, instant, day
        let table = [
            (0, "1970-01-01T00:00:00.000Z", "1970-01-01"),
            (1_795_248_000_005, "2026-11-21T08:00:00.005Z", "2026-11-21"),
            (1_795_219_199_999, "2026-11-20T23:59:59.999Z", "2026-11-20"),
            (-1, "1969-12-31T23:59:59.999Z", "1969-12-31"),
        ];
        for (millis, instant, day) in table {
            let at = Timestamp::from_unix_millis(millis);
            assert_eq!(at.to_string(), instant);
            assert_eq!(at.day().to_string(), day);
        }
        let never = Timestamp::from_unix_millis(i64::MAX);
        assert!(never.to_string().contains("since the Unix epoch"));
    }

    #[test]
    fn the_end_of_the_year_9999_is_a_time() {
        // text, the same in our spelling
        let table = [
            ("9999-12-30T21:59:59.999Z", "9999-12-30T21:59:59.999Z"),
            ("9999-12-30T22:00:01Z", "9999-12-30T22:00:01.000Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"),
            ("9999-12-31T23:59:59.999999+02:00", "9999-12-31T21:59:59.999Z"),
            ("9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59.999Z"),
        ];
        for (text, spelled) in table {
            let at: Timestamp = text.parse().unwrap();
            assert_eq!(at.to_string(), spelled);
            assert_eq!(spelled.parse(), Ok(at));
        }
        for text in ["9999-12-31", "9999-12-31T23:59:59", "9999-12-32T00:00:00Z", "+010000-01-01T00:00:00Z"] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError), "{text}");
        }
    }

    #[test]
    fn clock_skew_is_detected_despite_slow_reads() {
        let at = Timestamp::from_unix_millis;
        // before, the store's, after, found
        let table = [
            (10_000, 10_000, 10_000, None),
            (10_000, 12_000, 14_000, None),
            (10_000, 5_000, 10_000, None),
            (10_000, 4_999, 10_000, Some(ClockSkew::Ahead(Duration::from_millis(5_001)))),
            (10_000, 15_000, 10_000, None),
            (10_000, 15_001, 10_000, Some(ClockSkew::Behind(Duration::from_millis(5_001)))),
            // A slow response can explain a difference up to the time it took.
            (10_000, 18_000, 14_000, None),
            (i64::MIN, 0, i64::MIN, Some(ClockSkew::Behind(Duration::from_millis(i64::MAX.unsigned_abs())))),
        ];
        for (before, stores, after, found) in table {
            assert_eq!(ClockSkew::found(at(before), at(stores), at(after)), found, "{before} {stores} {after}");
        }
        assert_eq!(ClockSkew::Ahead(Duration::from_millis(61_900)).to_string(), "61 seconds ahead");
    }

    #[test]
    fn minutes_and_days_turn_at_their_first_millisecond() {
        let midnight = Day::from_unix_days(20_000).start();
        let before = Timestamp::from_unix_millis(midnight.unix_millis() - 1);
        assert_eq!(midnight.minute(), before.minute() + 1);
        assert_eq!(midnight.day().minus_days(1), before.day());
    }
}
