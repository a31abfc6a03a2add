//! Exact exchange rates of tokens, and amounts of a currency.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;

use crate::chains::units::TokenUnits;
use crate::money::decimal::{DecimalError, parse_as_written, parse_exact};

/// The value of one token in a currency: an exact decimal above zero, never a float.
///
/// ```
/// use metering_core::chains::TokenUnits;
/// use metering_core::payments::ExchangeRate;
///
/// let rate: ExchangeRate = "0.8612".parse()?;
/// let (paid, decimals) = (TokenUnits::new(5_000_000), 6); // 5 USDC
/// assert_eq!(rate.convert(paid, decimals, 2).unwrap().to_string(), "4.31");
/// assert_eq!(rate.convert(paid, decimals, 3).unwrap().to_string(), "4.306");
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeRate(Decimal);

/// An amount of a currency, with as many decimals as its minor unit has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrencyAmount(Decimal);

impl ExchangeRate {
    /// The value of an amount of the token, rounded half-even once to `minor_digits` decimals. `None` when the exact
    /// product is too large to compute with.
    #[must_use]
    pub fn convert(self, amount: TokenUnits, token_decimals: u8, minor_digits: u32) -> Option<CurrencyAmount> {
        let product = amount.get().checked_mul(self.0.mantissa().unsigned_abs())?;
        let decimals = u32::from(token_decimals) + self.0.scale();
        let minor = match decimals.checked_sub(minor_digits) {
            // Less than half of any power of ten that does not fit.
            Some(surplus) => 10_u128.checked_pow(surplus).map_or(0, |divisor| divided_half_even(product, divisor)),
            None => product.checked_mul(10_u128.checked_pow(minor_digits - decimals)?)?,
        };
        CurrencyAmount::of_minor(minor, minor_digits)
    }
}

impl CurrencyAmount {
    /// Nothing.
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// An amount of this many minor units, of which 10^`digits` make one. `None` if it is too large.
    #[must_use]
    pub fn of_minor(minor: u128, digits: u32) -> Option<Self> {
        Decimal::try_from_i128_with_scale(i128::try_from(minor).ok()?, digits).ok().map(Self)
    }

    /// The sum of two amounts of a currency. `None` when it is too large.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference; `None` if it is below zero, or the decimals differ.
    pub(crate) fn minus(self, part: Self) -> Option<Self> {
        let ((minor, digits), (part, of_part)) = (self.minor(), part.minor());
        Self::of_minor(minor.checked_sub(part).filter(|_| digits == of_part)?, digits)
    }

    /// The amount in minor units, and how many decimals they have.
    pub(crate) const fn minor(self) -> (u128, u32) {
        (self.0.mantissa().unsigned_abs(), self.0.scale())
    }
}

/// `value` ÷ `divisor`, rounded half-even.
pub(crate) fn divided_half_even(value: u128, divisor: u128) -> u128 {
    let (whole, rest) = (value / divisor, value % divisor);
    match rest.cmp(&(divisor - rest)) {
        Ordering::Less => whole,
        Ordering::Equal => whole + whole % 2,
        Ordering::Greater => whole + 1,
    }
}

impl FromStr for ExchangeRate {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let rate = parse_exact(text)?.normalize();
        if rate > Decimal::ZERO { Ok(Self(rate)) } else { Err(DecimalError::OutOfRange) }
    }
}

impl fmt::Display for ExchangeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for CurrencyAmount {
    type Err = DecimalError;

    /// Reads an amount as this type prints it.
    fn from_str(text: &str) -> Result<Self, DecimalError> {
        parse_as_written(text).map(Self)
    }
}

impl fmt::Display for CurrencyAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_half_even_to_the_minor_unit() {
        // units, decimals of the token, rate, minor digits, value
        let table: &[(u128, u8, &str, u32, Option<&str>)] = &[
            (5_000_000, 6, "0.8612", 2, Some("4.31")),
            (5_000_000, 6, "0.86", 2, Some("4.30")),
            (1_005_000, 6, "1", 2, Some("1.00")),
            (1_015_000, 6, "1", 2, Some("1.02")),
            (1_005_001, 6, "1", 2, Some("1.01")),
            (1_004_999, 6, "1", 2, Some("1.00")),
            (5_000, 6, "1", 2, Some("0.00")),
            (15_000, 6, "1", 2, Some("0.02")),
            (1_500_000, 6, "1", 0, Some("2")),
            (2_500_000, 6, "1", 0, Some("2")),
            (5_000_000, 6, "155.25", 0, Some("776")),
            (5_000_000, 6, "0.3070", 3, Some("1.535")),
            (7, 0, "2", 2, Some("14.00")),
            (2_000_000_000_000_000, 18, "2543.123456789", 2, Some("5.09")),
            (1_000_000 * 10_u128.pow(18), 18, "9999.123456789", 2, Some("9999123456.79")),
            (0, 6, "1", 2, Some("0.00")),
            (u128::MAX, 255, "1", 2, Some("0.00")),
            (u128::MAX, 6, "1.5", 2, None),
            (u128::MAX, 0, "1", 2, None),
            (10_u128.pow(30), 0, "1", 2, None),
        ];
        for (units, decimals, rate, digits, value) in table {
            let rate: ExchangeRate = rate.parse().unwrap();
            let converted = rate.convert(TokenUnits::new(*units), *decimals, *digits);
            let printed = converted.map(|amount| amount.to_string());
            assert_eq!(printed.as_deref(), *value, "{units} {decimals} {rate} {digits}");
            assert_eq!(printed.and_then(|text| text.parse().ok()), converted);
        }
    }

    #[test]
    fn rates_are_exact_and_above_zero() {
        for (text, printed) in [("0.8612", "0.8612"), ("1.500", "1.5"), ("1e-5", "0.00001"), ("10e-1", "1"), ("2", "2")]
        {
            assert_eq!(text.parse::<ExchangeRate>().unwrap().to_string(), printed, "{text}");
        }
        let too_long = format!("0.{}1", "3".repeat(28));
        for wrong in ["", "0", "-1", "NaN", "0,86", "1_0", ".5", "0x1", "1e400", &too_long] {
            assert!(wrong.parse::<ExchangeRate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_added_up_exactly() {
        let amount = |text: &str| text.parse::<CurrencyAmount>().unwrap();
        let sum = CurrencyAmount::ZERO.plus(amount("4.30")).and_then(|sum| sum.plus(amount("0.70")));
        assert_eq!(sum.unwrap().to_string(), "5.00");
        assert_eq!(CurrencyAmount::of_minor(1_250, 2), Some(amount("12.50")));
        let most = CurrencyAmount(Decimal::MAX);
        assert_eq!((most.plus(amount("1")), CurrencyAmount::of_minor(u128::MAX, 2)), (None, None));
    }

    #[test]
    fn amounts_keep_their_decimals() {
        for text in ["4.30", "0", "0.000", "776"] {
            assert_eq!(text.parse::<CurrencyAmount>().unwrap().to_string(), text);
        }
        for wrong in ["", "1e2", "x", "4,30"] {
            assert!(wrong.parse::<CurrencyAmount>().is_err(), "{wrong}");
        }
    }
}
