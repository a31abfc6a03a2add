//! The tax that prices include, and the tax in an amount.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;

use crate::money::decimal::{DecimalError, parse_exact};
use crate::payments::exchange_rate::{CurrencyAmount, divided_half_even};

/// The tax on sales. Prices include it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalesTax {
    /// Its name on receipts, such as `VAT`.
    pub name: String,
    /// Its rate.
    pub rate: TaxRate,
    /// Whether buyers with a VAT number of another country owe it themselves.
    pub reverse_charge: bool,
}

/// The rate of a tax: an exact decimal from 0 to below 1.
///
/// ```
/// use metering_core::payments::TaxRate;
///
/// let rate: TaxRate = "0.19".parse()?;
/// assert_eq!(rate.included_in("11.90".parse()?).unwrap().to_string(), "1.90");
/// assert_eq!(rate.percent(), "19");
/// assert!("19".parse::<TaxRate>().is_err());
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaxRate(Decimal);

impl TaxRate {
    /// The tax in an amount, rounded half-even once to the decimals of the amount. `None` if it is too large to compute
    /// with.
    #[must_use]
    pub fn included_in(self, gross: CurrencyAmount) -> Option<CurrencyAmount> {
        let ((minor, digits), rate) = (gross.minor(), self.0.mantissa().unsigned_abs());
        let whole = 10_u128.checked_pow(self.0.scale())?;
        CurrencyAmount::of_minor(divided_half_even(minor.checked_mul(rate)?, whole.checked_add(rate)?), digits)
    }

    /// The tax in a further part of an amount, given the other parts, each with its tax: all together have the tax in
    /// their sum, and no part's tax exceeds the part. `None` if the sum is too large, or the decimals differ.
    pub(crate) fn included_in_part(
        self,
        part: CurrencyAmount,
        others: impl IntoIterator<Item = (CurrencyAmount, CurrencyAmount)>,
    ) -> Option<CurrencyAmount> {
        let (minor, digits) = part.minor();
        let (mut all, mut taxed) = (minor, 0_u128);
        for ((gross, of_gross), (tax, of_tax)) in others.into_iter().map(|(gross, tax)| (gross.minor(), tax.minor())) {
            if (of_gross, of_tax) != (digits, digits) {
                return None;
            }
            (all, taxed) = (all.checked_add(gross)?, taxed.checked_add(tax)?);
        }
        let (tax, _) = self.included_in(CurrencyAmount::of_minor(all, digits)?)?.minor();
        CurrencyAmount::of_minor(tax.saturating_sub(taxed).min(minor), digits)
    }

    /// The rate in percent.
    #[must_use]
    pub fn percent(self) -> String {
        (self.0 * Decimal::ONE_HUNDRED).normalize().to_string()
    }
}

impl FromStr for TaxRate {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let rate = parse_exact(text)?.normalize();
        // More digits would overflow in a product with an amount.
        let is_rate = rate >= Decimal::ZERO && rate < Decimal::ONE && rate.scale() <= 8;
        if is_rate { Ok(Self(rate)) } else { Err(DecimalError::OutOfRange) }
    }
}

impl fmt::Display for TaxRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tax_is_part_of_the_amount_and_rounded_half_even() {
        // amount, rate, tax
        let table = [
            ("11.90", "0.19", "1.90"),
            ("4.31", "0.19", "0.69"),
            ("0.01", "0.19", "0.00"),
            ("1.05", "0.05", "0.05"),
            // Exactly half a cent: to the even one.
            ("0.03", "0.2", "0.00"),
            ("0.09", "0.2", "0.02"),
            ("500", "0.1", "45"),
            ("1.234", "0.05", "0.059"),
            ("10.00", "0", "0.00"),
            ("92233720368547758.07", "0.077", "6594239989209078.34"),
        ];
        for (amount, rate, tax) in table {
            let (gross, rate): (CurrencyAmount, TaxRate) = (amount.parse().unwrap(), rate.parse().unwrap());
            assert_eq!(rate.included_in(gross).unwrap().to_string(), tax, "{amount} at {rate}");
        }
    }

    #[test]
    fn parts_have_together_the_tax_of_their_sum() {
        let amount = |text: &str| text.parse::<CurrencyAmount>().unwrap();
        // rate, parts, the tax in each
        let table: [(&str, &[&str], &[&str]); 5] = [
            ("0.19", &["4.00", "4.00", "3.90"], &["0.64", "0.64", "0.62"]),
            // Each would be rounded down to zero; the last of a hundred would get all of it.
            ("0.2", &["0.03", "0.03", "0.03", "0.03"], &["0.00", "0.01", "0.01", "0.00"]),
            ("0.2", &["0.01", "0.01", "0.01"], &["0.00", "0.00", "0.00"]),
            ("0", &["1.00", "2.00"], &["0.00", "0.00"]),
            ("0.1", &["3", "8"], &["0", "1"]),
        ];
        for (rate, parts, expected) in table {
            let rate: TaxRate = rate.parse().unwrap();
            let mut known: Vec<(CurrencyAmount, CurrencyAmount)> = Vec::new();
            for (part, tax) in parts.iter().zip(expected) {
                let found = rate.included_in_part(amount(part), known.iter().copied()).unwrap();
                assert_eq!(found.to_string(), *tax, "{part} of {parts:?} at {rate}");
                known.push((amount(part), found));
            }
            let sum = |of: fn(&(CurrencyAmount, CurrencyAmount)) -> CurrencyAmount| {
                known.iter().map(of).reduce(|sum, next| sum.plus(next).unwrap()).unwrap()
            };
            assert_eq!(rate.included_in(sum(|known| known.0)), Some(sum(|known| known.1)), "{parts:?} at {rate}");
        }
        let too_much = [(amount("1.00"), amount("9.00"))];
        let rate: TaxRate = "0.19".parse().unwrap();
        assert_eq!(rate.included_in_part(amount("1.00"), too_much).unwrap().to_string(), "0.00");
        assert_eq!(rate.included_in_part(amount("1.00"), [(amount("1"), amount("0"))]), None);
    }

    #[test]
    fn a_rate_is_a_share_and_not_percent() {
        for (text, percent) in [("0.19", "19"), ("0.190", "19"), ("0.077", "7.7"), ("0", "0"), ("0.05", "5")] {
            assert_eq!(text.parse::<TaxRate>().unwrap().percent(), percent, "{text}");
        }
        for wrong in ["19", "1", "-0.1", "0,19", "19%", "", "0.123456789"] {
            assert!(wrong.parse::<TaxRate>().is_err(), "{wrong}");
        }
    }
}
