//! The last 26 hours of the year 9999. Many write its end for "never", but jiff has no instants there; this way every
//! instant has a date at every offset.

use jiff::civil::date;
use jiff::fmt::temporal::Pieces;

/// 9999-12-30T00:00:00Z, in milliseconds since the Unix epoch.
const START: i64 = 253_402_128_000_000;
const DAY: i64 = 86_400_000;
/// The last millisecond of the year.
const END: i64 = START + 2 * DAY - 1;

/// Reads RFC 3339 with a date on the last two days of the year 9999. Times that fall after the end of the year in UTC
/// are read as its last millisecond.
pub(super) fn read(text: &str) -> Option<i64> {
    let pieces = Pieces::parse(text).ok()?;
    let days = match pieces.date() {
        day if day == date(9999, 12, 30) => 0,
        day if day == date(9999, 12, 31) => 1,
        _ => return None,
    };
    let (time, offset) = (pieces.time()?, pieces.to_numeric_offset()?);
    let seconds = (i64::from(time.hour()) * 60 + i64::from(time.minute())) * 60 + i64::from(time.second());
    let seconds = seconds - i64::from(offset.seconds());
    Some((START + days * DAY + seconds * 1_000 + i64::from(time.millisecond())).min(END))
}

/// The text of an instant on these days.
pub(super) fn write(millis: i64) -> Option<String> {
    let rest = millis.checked_sub(START).filter(|_| (START..=END).contains(&millis))?;
    let (day, rest) = (30 + rest / DAY, rest % DAY);
    let (seconds, millis) = (rest / 1_000, rest % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    Some(format!("9999-12-{day}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
}
