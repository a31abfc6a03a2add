//! Exact decimals for output: units, and the number of decimal places.
//!
//! Token amounts exceed what a JSON number holds exactly, so they are written as strings.

use std::fmt;
use std::ops::AddAssign;

use serde::{Serialize, Serializer};

use crate::noise::MILLION;

/// A decimal number: `units` of 10^-`decimals`. Displayed without trailing zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    units: i128,
    decimals: u8,
}

/// Dollars, in hundred-millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Usd(i128);

impl Quantity {
    /// `decimals` is at most 18, the maximum of the sample's tokens and prices.
    pub(crate) const fn new(units: i128, decimals: u8) -> Self {
        assert!(decimals <= 18, "a fraction must fit 64 bits");
        Self { units, decimals }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u128.pow(u32::from(self.decimals));
        let (whole, fraction) = (self.units.unsigned_abs() / one, self.units.unsigned_abs() % one);
        let sign = if self.units < 0 { "-" } else { "" };
        let mut fraction = u64::try_from(fraction).expect("a fraction has at most 18 digits");
        if fraction == 0 {
            return write!(f, "{sign}{whole}");
        }
        let mut width = usize::from(self.decimals);
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        write!(f, "{sign}{whole}.{fraction:0width$}")
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Usd {
    const DECIMALS: u8 = 8;
    const UNITS_PER_DOLLAR: i128 = 100_000_000;

    pub(crate) const fn cents(cents: i128) -> Self {
        Self(cents * Self::UNITS_PER_DOLLAR / 100)
    }

    /// The amount in hundred-millionths, for tests.
    #[cfg(test)]
    pub(crate) const fn units(self) -> i128 {
        self.0
    }

    /// This amount raised by `millionths`, or lowered when negative.
    pub(crate) fn raised_by(self, millionths: i64) -> Self {
        Self(self.0 * i128::from(MILLION + millionths) / i128::from(MILLION))
    }

    /// The amount from which raising by `millionths` gives this one.
    pub(crate) fn before_raise(self, millionths: i64) -> Self {
        Self(self.0 * i128::from(MILLION) / i128::from(MILLION + millionths))
    }

    /// How many units of 10^-`decimals` this amount buys at a price of `price` for one.
    pub(crate) fn buys(self, price: Self, decimals: u8) -> i128 {
        self.0 * 10_i128.pow(u32::from(decimals)) / price.0
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Quantity::new(self.0, Self::DECIMALS).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_exactly_and_without_trailing_zeros() {
        // units, decimals, text
        let table = [
            (0, 18, "0"),
            (1, 0, "1"),
            (1_500_000, 6, "1.5"),
            (-1_500_000, 6, "-1.5"),
            (-5, 6, "-0.000005"),
            (10, 1, "1"),
            (123_456_789_000_000_000_000_000_001, 18, "123456789.000000000000000001"),
            (i128::MIN, 18, "-170141183460469231731.687303715884105728"),
        ];
        for (units, decimals, text) in table {
            assert_eq!(Quantity::new(units, decimals).to_string(), text);
        }
    }

    #[test]
    fn dollars_buy_tokens_in_their_smallest_units() {
        let price = Usd::cents(320_000);
        assert_eq!(Usd::cents(800_000).buys(price, 18), 2_500_000_000_000_000_000);
        assert_eq!(serde_json::to_string(&price.raised_by(500)).unwrap(), "\"3201.6\"");
        assert_eq!(price.raised_by(-500).before_raise(-500), price);
        let mut sum = price;
        sum += price;
        assert_eq!(sum, Usd::cents(640_000));
    }
}
