//! Times in the forms that services store them in.

use metering_core::clock::Timestamp;

/// Numbers above this are milliseconds: as seconds, they would be after the year 5138.
const LAST_SECONDS: i64 = 100_000_000_000;

/// Reads a time: RFC 3339, `YYYY-MM-DD HH:MM:SS` with or without fraction and offset (UTC if there is none), a date, or
/// a Unix time in seconds or milliseconds. `None` if it is none of these.
///
/// ```
/// use metering_import::parse_time;
///
/// let at = parse_time("2026-11-21T08:00:00Z");
/// for text in ["2026-11-21 08:00:00", "2026-11-21T10:00:00+02:00", "1795248000", "1795248000000", "1795248000.0"] {
///     assert_eq!(parse_time(text), at, "{text}");
/// }
/// assert_eq!(parse_time("yesterday"), None);
/// ```
#[must_use]
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Some(millis) = unix_time(text) {
        return Some(Timestamp::from_unix_millis(millis));
    }
    let instant = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let utc = jiff::tz::TimeZone::UTC;
        let civil = text.trim_end_matches(" UTC").parse::<jiff::civil::DateTime>().ok()?;
        utc.to_timestamp(civil).ok()
    })?;
    Some(Timestamp::from_unix_millis(instant.as_millisecond()))
}

fn unix_time(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    // Shorter numbers cannot be stored times: 9 digits are before 2001.
    if whole.len() < 9 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let number: i64 = whole.parse().ok()?;
    if number > LAST_SECONDS {
        return (number <= LAST_SECONDS * 1_000).then_some(number);
    }
    let millis: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    Some(number * 1_000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_time_is_read() {
        // text, milliseconds
        let table = [
            ("2026-11-21T08:00:00.005Z", Some(1_795_248_000_005)),
            ("2026-11-21 08:00:00.005", Some(1_795_248_000_005)),
            ("2026-11-21 08:00:00", Some(1_795_248_000_000)),
            ("2026-11-21 08:00:00+00:00", Some(1_795_248_000_000)),
            ("2026-11-21 08:00:00 UTC", Some(1_795_248_000_000)),
            (" 2026-11-21T08:00 ", Some(1_795_248_000_000)),
            ("2026-11-21", Some(1_795_219_200_000)),
            ("1795248000.25", Some(1_795_248_000_250)),
            ("", None),
            ("0", None),
            ("-1795248000", None),
            ("99999999999999999999", None),
            ("2026-13-01", None),
            ("2026-11-21T25:00:00Z", None),
            ("NaN", None),
        ];
        for (text, millis) in table {
            assert_eq!(parse_time(text).map(Timestamp::unix_millis), millis, "{text:?}");
        }
    }
}
