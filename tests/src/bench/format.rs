//! Formats figures for the tables.

use std::time::Duration;

/// Replaces a figure that does not exist.
pub(super) const NONE: &str = "–";

/// A whole number with thousands separators.
pub(super) fn with_separators(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Like [`with_separators`], for a `usize`.
pub(super) fn count(number: usize) -> String {
    with_separators(u64::try_from(number).unwrap_or(u64::MAX))
}

/// How many per second.
#[expect(clippy::float_arithmetic, reason = "a figure for people")]
pub(super) fn per_second(count: usize, spent: Duration) -> f64 {
    count as f64 / spent.as_secs_f64().max(1e-9)
}

/// How many times `other` fits.
#[expect(clippy::float_arithmetic, reason = "a ratio for people")]
pub(crate) fn ratio(own: f64, other: f64) -> f64 {
    own / other.max(1e-9)
}

/// A rate per second, rounded to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is above zero; casts saturate")]
pub(super) fn rate(per_second: f64) -> String {
    with_separators(per_second.round() as u64)
}

/// A latency with about three digits in a suitable unit; a dash for none.
#[expect(clippy::float_arithmetic, reason = "a figure for people")]
pub(super) fn latency(latency: Option<Duration>) -> String {
    let Some(latency) = latency else { return NONE.to_owned() };
    let micros = latency.as_secs_f64() * 1e6;
    match micros {
        ..1_000.0 => format!("{micros:.0} µs"),
        ..10_000.0 => format!("{:.2} ms", micros / 1e3),
        ..1_000_000.0 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

/// A percentage; a dash for none.
#[expect(clippy::float_arithmetic, reason = "a figure for people")]
pub(crate) fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| NONE.to_owned(), |part| format!("{:.0} %", part * 100.0))
}

/// A size in the suitable power of 1,000 bytes.
#[expect(clippy::float_arithmetic, reason = "a figure for people")]
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_separators() {
        let table = [(0, "0"), (999, "999"), (1_000, "1,000"), (123_456, "123,456"), (1_234_567, "1,234,567")];
        for (number, text) in table {
            assert_eq!(with_separators(number), text);
        }
        assert_eq!(rate(1_999.6), "2,000");
        assert_eq!(rate(per_second(500, Duration::from_millis(250))), "2,000");
        assert_eq!(rate(per_second(0, Duration::ZERO)), "0");
    }

    #[test]
    fn latencies_and_sizes_use_suitable_units() {
        let micros = |micros| latency(Some(Duration::from_micros(micros)));
        let latencies = [micros(0), micros(999), micros(1_004), micros(12_345), micros(1_500_000), latency(None)];
        assert_eq!(latencies, ["0 µs", "999 µs", "1.00 ms", "12.3 ms", "1.50 s", "–"]);
        assert_eq!([percent(Some(0.987)), percent(Some(0.0)), percent(None)], ["99 %", "0 %", "–"]);
        assert_eq!(
            [size(512), size(81_920), size(12_345_678), size(3_210_000_000)],
            ["0.5 kB", "81.9 kB", "12.3 MB", "3.21 GB"]
        );
    }
}
