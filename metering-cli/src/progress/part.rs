//! A part of a run: its name and its progress. Bars and lines have the same words.

use std::time::{Duration, Instant};

use indicatif::HumanCount;

use crate::progress::pace::Pace;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Things with this name, in the plural that ends in `s`, such as `rows`.
    Things(&'static str),
    /// Bytes.
    Bytes,
    /// Nothing: only time passes.
    Steps,
}

/// A part that has begun.
#[derive(Debug)]
pub(super) struct Part {
    what: String,
    unit: Unit,
    pub(super) total: Option<u64>,
    pub(super) done: u64,
    began: Instant,
    pace: Pace,
}

impl Part {
    pub(super) fn new(what: &str, unit: Unit, total: Option<u64>) -> Self {
        Self { what: what.to_owned(), unit, total, done: 0, began: Instant::now(), pace: Pace::default() }
    }

    /// Its current progress.
    pub(super) fn line(&mut self) -> String {
        self.line_after(self.began.elapsed())
    }

    fn line_after(&mut self, elapsed: Duration) -> String {
        self.pace.read(self.done, elapsed);
        format!("{}: {}", self.what, figures(self.unit, self.done, self.total, elapsed, self.pace))
    }
}

/// How much is done, how fast, and how long the rest takes. The rate is that of about the last minute; omitted below one
/// per second.
pub(super) fn figures(unit: Unit, done: u64, total: Option<u64>, elapsed: Duration, pace: Pace) -> String {
    if unit == Unit::Steps {
        return format!("{} so far", duration(elapsed.as_secs().into()));
    }
    let per_second = pace.per_second();
    let rate = match u64::try_from(per_second).unwrap_or(u64::MAX) {
        0 => String::new(),
        rate => format!(", {}/s", quantity(rate, unit)),
    };
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{}{rate}", quantity(done, unit));
    };
    // There may be more by now than was counted at first.
    let total = total.max(done);
    let percent = u128::from(done) * 100 / u128::from(total);
    let left = u128::from(total - done).checked_div(per_second);
    let left = left.map_or_else(String::new, |seconds| format!(", {} left", duration(seconds)));
    format!("{} of {} ({percent}%){rate}{left}", number(done, unit), quantity(total, unit))
}

fn quantity(count: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => size(count),
        Unit::Things(noun) if count == 1 => format!("1 {}", noun.strip_suffix('s').unwrap_or(noun)),
        Unit::Things(noun) => format!("{} {noun}", HumanCount(count)),
        Unit::Steps => String::new(),
    }
}

fn number(count: u64, unit: Unit) -> String {
    if unit == Unit::Bytes { size(count) } else { HumanCount(count).to_string() }
}

fn duration(seconds: u128) -> String {
    match seconds {
        ..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

/// A number of bytes in the largest unit that fits; with a decimal place below ten units.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let Some((name, unit)) = units.into_iter().find(|(_, unit)| bytes >= *unit) else {
        return format!("{bytes} bytes");
    };
    let tenths = u128::from(bytes) * 10 / u128::from(unit);
    if tenths >= 100 { format!("{} {name}", tenths / 10) } else { format!("{}.{} {name}", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_much_is_done_how_fast_and_how_long_it_takes() {
        let rows = Unit::Things("rows");
        // unit, total, done, seconds, line
        let table = [
            (rows, Some(808_727), 120_000, 10, "Writing: 120,000 of 808,727 rows (14%), 12,000 rows/s, 57 s left"),
            (rows, Some(808_727), 120_000, 100, "Writing: 120,000 of 808,727 rows (14%), 1,200 rows/s, 9 min left"),
            (rows, Some(10), 12, 10, "Writing: 12 of 12 rows (100%), 1 row/s, 0 s left"),
            (rows, Some(1), 1, 2, "Writing: 1 of 1 row (100%)"),
            (rows, Some(10), 0, 10, "Writing: 0 of 10 rows (0%)"),
            (rows, None, 120_000, 10, "Writing: 120,000 rows, 12,000 rows/s"),
            (Unit::Bytes, Some(1 << 30), 512 << 20, 8, "Writing: 512 MiB of 1.0 GiB (50%), 64 MiB/s, 8 s left"),
            (rows, None, 3, 10, "Writing: 3 rows"),
            (Unit::Steps, None, 0, 20, "Writing: 20 s so far"),
            (Unit::Steps, None, 0, 300, "Writing: 5 min so far"),
        ];
        for (unit, total, done, seconds, expected) in table {
            let mut part = Part { done, ..Part::new("Writing", unit, total) };
            assert_eq!(part.line_after(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn the_time_left_is_that_of_the_current_rate() {
        let mut part = Part::new("Writing", Unit::Things("rows"), Some(808_727));
        // seconds, done, line
        let table = [
            (10, 120_000, "Writing: 120,000 of 808,727 rows (14%), 12,000 rows/s, 57 s left"),
            (20, 240_000, "Writing: 240,000 of 808,727 rows (29%), 12,000 rows/s, 47 s left"),
            (30, 241_000, "Writing: 241,000 of 808,727 rows (29%), 6,854 rows/s, 82 s left"),
            (40, 242_000, "Writing: 242,000 of 808,727 rows (29%), 4,384 rows/s, 2 min left"),
            (60, 244_000, "Writing: 244,000 of 808,727 rows (30%), 2,030 rows/s, 4 min left"),
        ];
        for (seconds, done, expected) in table {
            part.done = done;
            assert_eq!(part.line_after(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn sizes_have_two_digits_at_least() {
        let table = [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1_536, "1.5 KiB"),
            (93 << 20, "93 MiB"),
            (u64::MAX, "17179869183 GiB"),
        ];
        for (bytes, expected) in table {
            assert_eq!(size(bytes), expected);
        }
    }
}
