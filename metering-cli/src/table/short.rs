//! The short forms of cells. Text that does not fit its column's type is unchanged.

use metering_core::Timestamp;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::table::column::Short;

/// Decimal places of a short amount.
const PLACES: usize = 4;
/// How many characters of an id are kept after its prefix, and how many at its end.
const KEPT: usize = 4;
/// The longest prefix of an id, such as `org_`.
const PREFIX_MAX: usize = 5;
/// From this age on, a time is a date.
const DATES_FROM_DAYS: i64 = 60;

/// How many columns of a terminal a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The short form of a cell.
pub(super) fn shortened(kind: Short, text: &str, now: Timestamp, ellipsis: &str) -> String {
    let short = match kind {
        Short::Never | Short::Text => None,
        Short::Time => text.parse().ok().map(|at| relative(at, now)),
        Short::Amount => four_places(text),
        Short::Id => without_middle(text, ellipsis),
    };
    short.filter(|short| width(short) < width(text)).unwrap_or_else(|| text.to_owned())
}

/// Cuts a text to a width. It ends with a mark for the missing text, if that fits.
pub(super) fn cut(text: &str, columns: usize, ellipsis: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mark, room) = match columns.checked_sub(width(ellipsis)) {
        Some(room) => (ellipsis, room),
        None => ("", columns),
    };
    let (mut kept, mut taken) = (String::new(), 0);
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            break;
        }
        kept.push(c);
    }
    kept.push_str(mark);
    kept
}

fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.unix_seconds().saturating_sub(at.unix_seconds());
    let (size, unit) = match seconds.saturating_abs() {
        size @ ..60 => (size, "s"),
        size @ ..3_600 => (size / 60, "min"),
        size @ ..86_400 => (size / 3_600, "h"),
        size => (size / 86_400, "days"),
    };
    match (unit, size) {
        ("days", DATES_FROM_DAYS..) => at.day().to_string(),
        ("days", 1) if seconds < 0 => "in 1 day".to_owned(),
        ("days", 1) => "1 day ago".to_owned(),
        _ if seconds < 0 => format!("in {size} {unit}"),
        _ => format!("{size} {unit} ago"),
    }
}

/// Cuts off further decimal places, as the account page does, so that no balance looks larger than it is. Text after
/// the number, such as a token, is kept.
fn four_places(text: &str) -> Option<String> {
    let (number, unit) = text.split_at(text.find(' ').unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.')?;
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let digits = whole.trim_start_matches(['-', '+']);
    if !is_number(digits) || !is_number(fraction) || whole.len() > digits.len() + 1 {
        return None;
    }
    let short = format!("{whole}.{}", fraction.get(..PLACES)?);
    let is_zero = |text: &str| !text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if is_zero(&short) && !is_zero(number) {
        // Zero would be wrong.
        return Some(if whole.starts_with('-') { format!(">-0.0001{unit}") } else { format!("<0.0001{unit}") });
    }
    Some(format!("{short}{unit}"))
}

fn without_middle(text: &str, ellipsis: &str) -> Option<String> {
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let prefix = match text.find('_') {
        Some(position) if position < PREFIX_MAX => position + 1,
        _ if text.starts_with("0x") => 2,
        _ => 0,
    };
    let (start, end) = (prefix + KEPT, text.len().checked_sub(KEPT)?);
    (start < end).then(|| format!("{}{ellipsis}{}", &text[..start], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(kind: Short, text: &str) -> String {
        shortened(kind, text, "2026-11-21T12:00:00Z".parse().unwrap(), "…")
    }

    #[test]
    fn times_become_relative_and_old_ones_dates() {
        let table = [
            ("2026-11-21T12:00:00.000Z", "0 s ago"),
            ("2026-11-21T11:59:01.000Z", "59 s ago"),
            ("2026-11-21T11:56:30.000Z", "3 min ago"),
            ("2026-11-21T00:30:00.000Z", "11 h ago"),
            ("2026-11-20T11:00:00.000Z", "1 day ago"),
            ("2026-10-01T12:00:00.000Z", "51 days ago"),
            ("2026-09-01T12:00:00.000Z", "2026-09-01"),
            ("2026-11-21T12:05:00.000Z", "in 5 min"),
            ("2026-11-22T13:00:00.000Z", "in 1 day"),
            ("-", "-"),
            ("2026-11-20", "2026-11-20"),
        ];
        for (text, expected) in table {
            assert_eq!(short(Short::Time, text), expected, "{text}");
        }
    }

    #[test]
    fn amounts_keep_four_places_and_are_never_shown_as_zero() {
        let table = [
            ("7.4999305556", "7.4999"),
            ("-0.0013888889", "-0.0013"),
            ("+10.00009", "+10.0000"),
            ("0.0000694444", "<0.0001"),
            ("-0.0000694444", ">-0.0001"),
            ("0.0000000000", "0.0000"),
            ("5.003817 USDC", "5.0038 USDC"),
            ("12", "12"),
            ("1.25", "1.25"),
            ("-", "-"),
            ("out of range", "out of range"),
        ];
        for (text, expected) in table {
            assert_eq!(short(Short::Amount, text), expected, "{text}");
        }
    }

    #[test]
    fn ids_lose_their_middle() {
        let table = [
            ("org_0123456789abcdefghij", "org_0123…ghij"),
            ("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0xf39F…2266"),
            ("9f86d081884c7d65", "9f86…7d65"),
            ("org_1", "org_1"),
            ("TOTAL", "TOTAL"),
            ("-", "-"),
        ];
        for (text, expected) in table {
            assert_eq!(short(Short::Id, text), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_cut_by_the_width_that_is_displayed() {
        let table = [
            ("description", 11, "description"),
            ("description", 6, "descr…"),
            ("日本語のテキスト", 7, "日本語…"),
            ("日本語のテキスト", 6, "日本…"),
            ("ab", 1, "…"),
            ("ab", 0, ""),
        ];
        for (text, columns, expected) in table {
            let found = cut(text, columns, "…");
            assert_eq!(found, expected);
            assert!(width(&found) <= columns);
        }
        assert_eq!(cut("abc", 1, ".."), "a");
    }
}
