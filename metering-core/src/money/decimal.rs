//! Parses exact decimals: the one parser for credits, weights and multipliers.
//!
//! `rust_decimal` alone is too lenient for money: `parse` rounds numbers that it cannot represent, and even its exact
//! parser accepts `1_000`, `+5` and `.5`. So the text must first match the number grammar of JSON (RFC 8259,
//! section 6).

use rust_decimal::Decimal;

/// More powers of ten than lie between the smallest and the largest decimal.
const MAX_SHIFT: u32 = 60;

/// Why the text is not a usable decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecimalError {
    /// The text is not a JSON number.
    #[error("not a decimal number such as 12 or 0.25")]
    Malformed,
    /// The number has more digits than can be represented exactly, or is outside the allowed range.
    #[error("out of range")]
    OutOfRange,
    /// The number is not a multiple of the smallest unit.
    #[error("too many decimal places")]
    TooFine,
}

/// Parses a JSON number exactly; nothing is ever rounded.
pub(crate) fn parse_exact(text: &str) -> Result<Decimal, DecimalError> {
    // Longer than any number this service handles, and bounds the work for hostile input.
    const MAX_TEXT_BYTES: usize = 64;
    if text.len() > MAX_TEXT_BYTES {
        return Err(DecimalError::OutOfRange);
    }
    let (mantissa, exponent) = split_exponent(text)?;
    if !is_plain_json_number(mantissa) {
        return Err(DecimalError::Malformed);
    }
    let value = Decimal::from_str_exact(mantissa).map_err(|_| DecimalError::OutOfRange)?;
    shift(value.normalize(), exponent)
}

/// Parses a decimal without an exponent exactly, and keeps its trailing zeros.
pub(crate) fn parse_as_written(text: &str) -> Result<Decimal, DecimalError> {
    if !is_plain_json_number(text) {
        return Err(DecimalError::Malformed);
    }
    Decimal::from_str_exact(text).map_err(|_| DecimalError::OutOfRange)
}

/// Parses a JSON number, rounded to what can be represented: the last of too many digits, and a number that is too
/// large to the largest.
///
/// # Errors
/// When the text is not a JSON number.
pub(crate) fn parse_rounded(text: &str) -> Result<Decimal, DecimalError> {
    let (mantissa, exponent) = match split_exponent(text) {
        Err(DecimalError::OutOfRange) => {
            let sign = if text.contains("e-") || text.contains("E-") { i32::MIN } else { i32::MAX };
            (text.split(['e', 'E']).next().unwrap_or_default(), sign)
        }
        split => split?,
    };
    if !is_plain_json_number(mantissa) {
        return Err(DecimalError::Malformed);
    }
    let largest = if mantissa.starts_with('-') { Decimal::MIN } else { Decimal::MAX };
    let Ok(value) = mantissa.parse::<Decimal>() else { return Ok(largest) };
    if value.is_zero() {
        return Ok(value);
    }
    let scaled = (0..exponent.unsigned_abs().min(MAX_SHIFT)).try_fold(value, |value, _| {
        if exponent > 0 { value.checked_mul(Decimal::TEN) } else { value.checked_div(Decimal::TEN) }
    });
    Ok(scaled.unwrap_or(largest))
}

fn split_exponent(text: &str) -> Result<(&str, i32), DecimalError> {
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return Ok((text, 0));
    };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(DecimalError::Malformed);
    }
    let exponent = exponent.parse().map_err(|_| DecimalError::OutOfRange)?;
    Ok((mantissa, exponent))
}

fn is_plain_json_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    digits(whole) && (whole == "0" || !whole.starts_with('0')) && fraction.is_none_or(digits)
}

/// `value` × 10^`exponent`, exactly.
fn shift(value: Decimal, exponent: i32) -> Result<Decimal, DecimalError> {
    if exponent == 0 || value.is_zero() {
        return Ok(value);
    }
    let scale = i32::try_from(value.scale())
        .ok()
        .and_then(|scale| scale.checked_sub(exponent))
        .ok_or(DecimalError::OutOfRange)?;
    let mut shifted = value;
    if let Ok(scale) = u32::try_from(scale) {
        shifted.set_scale(scale).map_err(|_| DecimalError::OutOfRange)?;
        return Ok(shifted);
    }
    let factor = 10_i128
        .checked_pow(scale.unsigned_abs())
        .and_then(|factor| Decimal::try_from_i128_with_scale(factor, 0).ok())
        .ok_or(DecimalError::OutOfRange)?;
    shifted.set_scale(0).map_err(|_| DecimalError::OutOfRange)?;
    shifted.checked_mul(factor).ok_or(DecimalError::OutOfRange)
}

/// Parses a JSON number as a whole number of units, of which `units_per_one` make 1.
pub(crate) fn parse_units(text: &str, units_per_one: i64) -> Result<i64, DecimalError> {
    to_units(parse_exact(text)?, units_per_one)
}

/// Converts `value` to a whole number of units.
pub(crate) fn to_units(value: Decimal, units_per_one: i64) -> Result<i64, DecimalError> {
    i64::try_from(to_wide_units(value, units_per_one)?).map_err(|_| DecimalError::OutOfRange)
}

/// The same, for more units than 64 bits can hold.
pub(crate) fn to_wide_units(value: Decimal, units_per_one: i64) -> Result<i128, DecimalError> {
    let units = value.checked_mul(Decimal::from(units_per_one)).ok_or(DecimalError::OutOfRange)?.normalize();
    if units.scale() == 0 { Ok(units.mantissa()) } else { Err(DecimalError::TooFine) }
}

/// Parses a JSON number of zero or more as units, of which `units_per_one` make 1, rounded up to a whole number of
/// units however many digits it has.
///
/// # Errors
/// [`DecimalError::OutOfRange`] when the number is negative, 10²⁹ or more, or longer than 256 bytes.
pub(crate) fn parse_rounding_up(text: &str, units_per_one: u64) -> Result<u128, DecimalError> {
    const MAX_TEXT_BYTES: usize = 256;
    const WHOLE_DIGITS: i64 = 29;
    const FRACTION_DIGITS: i64 = 27;
    const FRACTION: u128 = 10_u128.pow(27);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, saturated_exponent(exponent)?),
        None => (text, 0),
    };
    if !is_plain_json_number(mantissa) {
        return Err(DecimalError::Malformed);
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(DecimalError::OutOfRange);
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit).collect();
    let Some(leading) = digits.iter().position(|digit| *digit != b'0') else { return Ok(0) };
    if text.starts_with('-') {
        return Err(DecimalError::OutOfRange);
    }
    // How many digits are before the point, once the exponent has moved it.
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX).saturating_add(exponent);
    if point.saturating_sub(i64::try_from(leading).unwrap_or(i64::MAX)) > WHOLE_DIGITS {
        return Err(DecimalError::OutOfRange);
    }
    let digit = |position: i64| -> u128 {
        let found = usize::try_from(position).ok().and_then(|position| digits.get(position));
        found.map_or(0, |digit| u128::from(digit - b'0'))
    };
    let read = |from: i64, to: i64| (from..to).fold(0_u128, |value, position| value * 10 + digit(position));
    let whole = read(point.saturating_sub(WHOLE_DIGITS), point);
    let end = point.saturating_add(FRACTION_DIGITS);
    let rest = digits.get(usize::try_from(end).unwrap_or(0)..).unwrap_or_default();
    let fraction = read(point, end) + u128::from(rest.iter().any(|digit| *digit != b'0'));
    let units_per_one = u128::from(units_per_one);
    let rest = (fraction * units_per_one).div_ceil(FRACTION);
    whole.checked_mul(units_per_one).and_then(|units| units.checked_add(rest)).ok_or(DecimalError::OutOfRange)
}

/// An exponent, saturated: a number has at most 256 digits, so larger ones make no difference.
fn saturated_exponent(text: &str) -> Result<i64, DecimalError> {
    const MOST: i64 = 1_000;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DecimalError::Malformed);
    }
    let exponent = digits.parse().unwrap_or(MOST).min(MOST);
    Ok(if is_negative { -exponent } else { exponent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly_or_refused() {
        use DecimalError::{Malformed, OutOfRange, TooFine};
        // text, units at a million per one
        let table: &[(&str, Result<i64, DecimalError>)] = &[
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("1", Ok(1_000_000)),
            ("0.000001", Ok(1)),
            ("1.50", Ok(1_500_000)),
            ("-2.25", Ok(-2_250_000)),
            ("1e2", Ok(100_000_000)),
            ("12E-3", Ok(12_000)),
            ("0.00000100", Ok(1)),
            ("0e999", Ok(0)),
            ("0.0000001", Err(TooFine)),
            ("1e-7", Err(TooFine)),
            ("1e400", Err(OutOfRange)),
            ("1e-400", Err(OutOfRange)),
            ("1e99999999999", Err(OutOfRange)),
            ("99999999999999999999", Err(OutOfRange)),
            ("", Err(Malformed)),
            ("-", Err(Malformed)),
            ("+5", Err(Malformed)),
            (".5", Err(Malformed)),
            ("5.", Err(Malformed)),
            ("01", Err(Malformed)),
            ("1_000", Err(Malformed)),
            ("1,5", Err(Malformed)),
            ("1e", Err(Malformed)),
            ("NaN", Err(Malformed)),
            (" 1", Err(Malformed)),
            ("0x10", Err(Malformed)),
        ];
        for (text, expected) in table {
            assert_eq!(parse_units(text, 1_000_000), *expected, "{text:?}");
        }
        assert_eq!(parse_units(&"9".repeat(65), 1), Err(OutOfRange));
    }

    #[test]
    fn numbers_of_any_length_are_rounded_up() {
        use DecimalError::{Malformed, OutOfRange};
        let (thirds, tiny) = (format!("0.{}", "3".repeat(200)), format!("0.{}1", "0".repeat(200)));
        let (large, padded) = (format!("1{}", "0".repeat(200)), format!("{}e-200", "7".repeat(30) + &"0".repeat(200)));
        let too_long = format!("0.{}", "1".repeat(255));
        // text, units at a million per one
        let table: &[(&str, Result<u128, DecimalError>)] = &[
            ("0", Ok(0)),
            ("-0.0e9", Ok(0)),
            ("0e99999999999999999999", Ok(0)),
            ("1.5", Ok(1_500_000)),
            ("0.0000001", Ok(1)),
            ("1.0000001", Ok(1_000_001)),
            ("12e-3", Ok(12_000)),
            ("0.00012E2", Ok(12_000)),
            ("0.1234567890123456789012345678901234567890", Ok(123_457)),
            ("1e-308", Ok(1)),
            ("1e-99999999999999999999", Ok(1)),
            (&thirds, Ok(333_334)),
            (&tiny, Ok(1)),
            ("79228162514264337593543950335", Ok(79_228_162_514_264_337_593_543_950_335_000_000)),
            ("1e29", Err(OutOfRange)),
            ("1e308", Err(OutOfRange)),
            ("1e99999999999999999999", Err(OutOfRange)),
            (&large, Err(OutOfRange)),
            (&padded, Err(OutOfRange)),
            (&too_long, Err(OutOfRange)),
            ("-1e-400", Err(OutOfRange)),
            ("1e", Err(Malformed)),
            ("1e1.5", Err(Malformed)),
            ("01", Err(Malformed)),
            ("1_0", Err(Malformed)),
            ("", Err(Malformed)),
        ];
        for (text, units) in table {
            assert_eq!(parse_rounding_up(text, 1_000_000), *units, "{text}");
        }
    }
}
