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

/// Parses a JSON number, rounded to what can be represented: the last of too many digits, and a number that is too large
/// to the largest.
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

/// `value` × `units_per_one`, rounded up to a whole number of units.
///
/// # Errors
/// When `value` is negative, or the result does not fit.
pub(crate) fn round_up(value: Decimal, units_per_one: u64) -> Result<u128, DecimalError> {
    let mantissa = u128::try_from(value.mantissa()).map_err(|_| DecimalError::OutOfRange)?;
    let (one, units_per_one) = (10_u128.pow(value.scale()), u128::from(units_per_one));
    let whole = (mantissa / one).checked_mul(units_per_one);
    let rest = (mantissa % one).checked_mul(units_per_one).map(|rest| rest.div_ceil(one));
    whole.zip(rest).and_then(|(whole, rest)| whole.checked_add(rest)).ok_or(DecimalError::OutOfRange)
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
    fn fractions_of_a_unit_are_rounded_up() {
        // text, units at a thousand per one
        let table = [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("1.5", Ok(1_500)),
            ("1.0000", Ok(1_000)),
            ("1.0001", Ok(1_001)),
            ("1e-28", Ok(1)),
            ("7.9228162514264337593543950335", Ok(7_923)),
            ("79228162514264337593543950335", Ok(79_228_162_514_264_337_593_543_950_335_000)),
            ("-0.1", Err(DecimalError::OutOfRange)),
        ];
        for (text, units) in table {
            assert_eq!(round_up(parse_exact(text).unwrap(), 1_000), units, "{text}");
        }
    }
}
