//! Exact credits: the unit of account and the only type for money in this project.
//!
//! One credit is 7,200,000,000 atoms, so the base call (1/7200 credit), route weights with six decimals, and credit
//! amounts with eight decimals are all whole numbers of atoms. Amounts never pass through floating point.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::money::decimal::{self, DecimalError};

/// Atoms in one credit.
pub const ATOMS_PER_CREDIT: i64 = 7_200_000_000;

/// An exact, signed amount of credits, stored as whole atoms.
///
/// Arithmetic is checked: an overflow is `None`, never a wrap. In JSON and [`Display`](fmt::Display), an amount is a
/// decimal number of credits, rounded half-even to ten places with trailing zeros dropped. It is parsed from the text
/// of the number, never through a float.
///
/// ```
/// use metering_core::Credits;
///
/// let balance: Credits = "2".parse()?;
/// let after = balance.checked_sub(Credits::BASE_CALL).unwrap();
/// assert_eq!(after.to_string(), "1.9998611111");
/// assert_eq!(after.atoms(), 2 * 7_200_000_000 - 1_000_000);
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Credits(i64);

impl Credits {
    /// No credits.
    pub const ZERO: Self = Self(0);
    /// The price of a request of weight 1: exactly 1/7200 credit.
    pub const BASE_CALL: Self = Self(1_000_000);
    /// The largest amount, a little over 1.28 billion credits.
    pub const MAX: Self = Self(i64::MAX);

    /// An amount of whole atoms, each 1/7,200,000,000 credit.
    #[must_use]
    pub const fn from_atoms(atoms: i64) -> Self {
        Self(atoms)
    }

    /// A whole number of credits; `None` when it is out of range.
    ///
    /// ```
    /// use metering_core::Credits;
    ///
    /// assert_eq!(Credits::from_whole(2), "2".parse().ok());
    /// assert_eq!(Credits::from_whole(i64::MAX), None);
    /// ```
    #[must_use]
    pub const fn from_whole(credits: i64) -> Option<Self> {
        match credits.checked_mul(ATOMS_PER_CREDIT) {
            Some(atoms) => Some(Self(atoms)),
            None => None,
        }
    }

    /// The amount in atoms, each 1/7,200,000,000 credit.
    #[must_use]
    pub const fn atoms(self) -> i64 {
        self.0
    }

    /// An amount given in credits.
    ///
    /// ```
    /// use metering_core::Credits;
    /// use rust_decimal::Decimal;
    ///
    /// let price = Credits::from_decimal(Decimal::new(25, 2))?; // 0.25
    /// assert_eq!(price.to_decimal(), Decimal::new(25, 2));
    /// assert!(Credits::from_decimal(Decimal::new(1, 10)).is_err()); // finer than an atom
    /// # Ok::<(), metering_core::money::DecimalError>(())
    /// ```
    ///
    /// # Errors
    /// When `value` is not a whole number of atoms (eight decimals always are), or out of range.
    pub fn from_decimal(value: Decimal) -> Result<Self, DecimalError> {
        decimal::to_units(value, ATOMS_PER_CREDIT).map(Self)
    }

    /// The amount in credits, rounded half-even to ten decimal places.
    #[must_use]
    pub fn to_decimal(self) -> Decimal {
        decimal_of_atoms(self.0.into()).expect("any 64-bit number of atoms fits in a 96-bit decimal")
    }

    /// Parses an amount as this type prints it: the inverse of `Display`, which rounds to ten decimal places. No two
    /// amounts print the same, so nothing is lost.
    ///
    /// ```
    /// use metering_core::Credits;
    ///
    /// let balance = Credits::from_atoms(123_456_789);
    /// assert_eq!(balance.to_string(), "0.0171467762");
    /// assert_eq!(Credits::from_printed("0.0171467762")?, balance);
    /// assert!("0.0171467762".parse::<Credits>().is_err()); // no whole number of atoms
    /// # Ok::<(), metering_core::money::DecimalError>(())
    /// ```
    ///
    /// # Errors
    /// When the text is not a number, has more than ten decimals, or is out of range.
    pub fn from_printed(text: &str) -> Result<Self, DecimalError> {
        // 25 atoms print as 18 ten-billionths.
        const TEN_BILLIONTHS: i64 = 10_000_000_000;
        let printed = decimal::to_wide_units(decimal::parse_exact(text)?, TEN_BILLIONTHS)?;
        let doubled = printed.checked_mul(36).ok_or(DecimalError::OutOfRange)?;
        i64::try_from((doubled + 25).div_euclid(50)).map(Self).map_err(|_| DecimalError::OutOfRange)
    }

    /// Parses an amount of zero or more credits, and rounds it up to a whole atom. Amounts above [`Credits::MAX`] count
    /// as that.
    ///
    /// ```
    /// use metering_core::Credits;
    ///
    /// assert_eq!(Credits::parse_rounding_up("1e-15")?, Credits::from_atoms(1));
    /// assert_eq!(Credits::parse_rounding_up("0.01")?, "0.01".parse()?);
    /// assert_eq!(Credits::parse_rounding_up("1e20")?, Credits::MAX);
    /// # Ok::<(), metering_core::money::DecimalError>(())
    /// ```
    ///
    /// # Errors
    /// When the text is not a number, or is negative.
    pub fn parse_rounding_up(text: &str) -> Result<Self, DecimalError> {
        match decimal::parse_rounding_up(text, ATOMS_PER_CREDIT.unsigned_abs()) {
            Err(DecimalError::OutOfRange) if !text.starts_with('-') => Ok(Self::MAX),
            atoms => Ok(i64::try_from(atoms?).map_or(Self::MAX, Self)),
        }
    }

    /// The sum, or `None` on overflow.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(atoms) => Some(Self(atoms)),
            None => None,
        }
    }

    /// The difference, or `None` on overflow.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(atoms) => Some(Self(atoms)),
            None => None,
        }
    }

    /// The negated amount, or `None` on overflow.
    #[must_use]
    pub const fn checked_neg(self) -> Option<Self> {
        match self.0.checked_neg() {
            Some(atoms) => Some(Self(atoms)),
            None => None,
        }
    }

    /// Whether the amount has at most eight decimals, so its printed form is exact.
    #[must_use]
    pub const fn has_eight_decimals(self) -> bool {
        self.0 % (ATOMS_PER_CREDIT / 100_000_000) == 0
    }

    /// Whether the amount is above zero.
    #[must_use]
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// Whether the amount is below zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The sum of `amounts`, or `None` on overflow.
    ///
    /// ```
    /// use metering_core::Credits;
    ///
    /// let prices = ["0.25", "0.5", "1.25"].map(|price| price.parse::<Credits>().unwrap());
    /// assert_eq!(Credits::checked_sum(prices), Credits::from_whole(2));
    /// assert_eq!(Credits::checked_sum([Credits::MAX, Credits::BASE_CALL]), None);
    /// ```
    pub fn checked_sum(amounts: impl IntoIterator<Item = Self>) -> Option<Self> {
        amounts.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }
}

/// Converts atoms to credits, rounded half-even to ten decimal places; `None` when a decimal cannot hold the result.
pub(crate) fn decimal_of_atoms(atoms: i128) -> Option<Decimal> {
    Decimal::try_from_i128_with_scale(ten_billionths(atoms)?, 10).ok().map(|decimal| decimal.normalize())
}

/// Converts atoms to ten-billionths of a credit, rounded half-even.
fn ten_billionths(atoms: i128) -> Option<i128> {
    // An atom is 25/18 of a ten-billionth of a credit, so an integer division gives the amount in ten-billionths.
    let scaled = atoms.checked_mul(25)?;
    let (mut quotient, remainder) = (scaled.div_euclid(18), scaled.rem_euclid(18));
    if remainder > 9 || (remainder == 9 && quotient % 2 != 0) {
        quotient += 1;
    }
    Some(quotient)
}

impl FromStr for Credits {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        decimal::parse_units(text, ATOMS_PER_CREDIT).map(Self)
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every metered response has two amounts. Without options, they need no decimal.
        let is_plain = f.width().is_none() && f.precision().is_none() && !f.sign_plus();
        let printed = ten_billionths(self.0.into()).filter(|_| is_plain);
        let Some(printed) = printed.and_then(|printed| u64::try_from(printed.unsigned_abs()).ok()) else {
            return fmt::Display::fmt(&self.to_decimal(), f);
        };
        let sign = if self.is_negative() { "-" } else { "" };
        let (whole, mut rest, mut places) = (printed / 10_000_000_000, printed % 10_000_000_000, 10_usize);
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        while rest % 10 == 0 {
            (rest, places) = (rest / 10, places - 1);
        }
        write!(f, "{sign}{whole}.{rest:0places$}")
    }
}

impl fmt::Debug for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credits({self})")
    }
}

impl Serialize for Credits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Credits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        number.get().parse().map_err(|error| {
            serde::de::Error::custom(format_args!("{} is not an amount of credits: {error}", excerpt(number.get())))
        })
    }
}

/// Deserializes an amount that was printed, with [`Credits::from_printed`].
///
/// # Errors
/// When it is not a printed amount.
pub fn printed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Credits, D::Error> {
    let number = Box::<RawValue>::deserialize(deserializer)?;
    Credits::from_printed(number.get()).map_err(serde::de::Error::custom)
}

/// The same, for an amount that may be null.
///
/// # Errors
/// See [`printed`].
pub fn printed_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Credits>, D::Error> {
    #[derive(Deserialize)]
    struct Printed(#[serde(deserialize_with = "printed")] Credits);
    Ok(Option::<Printed>::deserialize(deserializer)?.map(|Printed(amount)| amount))
}

/// The start of an untrusted text, short enough for an error message.
fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_credit_is_7200_base_calls() {
        let spent = (0..7200).try_fold(Credits::ZERO, |sum, _| sum.checked_add(Credits::BASE_CALL));
        assert_eq!(spent, Credits::from_whole(1));
    }

    #[test]
    fn amounts_are_printed_half_even_to_ten_places() {
        // atoms, text
        let table = [
            (0, "0"),
            (1_000_000, "0.0001388889"),
            (-1_000_000, "-0.0001388889"),
            (72, "0.00000001"),
            (1, "0.0000000001"),
            (9, "0.0000000012"),  // 12.5 ten-billionths, rounded to the even 12
            (27, "0.0000000038"), // 37.5, rounded to the even 38
            (-9, "-0.0000000012"),
            (-27, "-0.0000000038"),
            (7_200_000_000, "1"),
            (7_200_000_000 * 10, "10"),
            (720_000_000, "0.1"),
            (i64::MAX, "1281023894.007607751"),
            (i64::MIN, "-1281023894.0076077511"),
        ];
        for (atoms, text) in table {
            assert_eq!(Credits::from_atoms(atoms).to_string(), text, "{atoms}");
        }
    }

    #[test]
    fn json_numbers_are_read_from_their_text() {
        // No double represents this number exactly.
        let amount: Credits = serde_json::from_str("123456789.12345678").unwrap();
        assert_eq!(amount.to_string(), "123456789.12345678");
        assert_eq!(serde_json::to_string(&amount).unwrap(), "123456789.12345678");
        for bad in ["\"5\"", "null", "0.000000001", "1e300", "true", "[1]"] {
            assert!(serde_json::from_str::<Credits>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn overflow_is_none() {
        assert_eq!(Credits::MAX.checked_add(Credits::from_atoms(1)), None);
        assert_eq!(Credits::from_atoms(i64::MIN).checked_sub(Credits::BASE_CALL), None);
        assert_eq!(Credits::from_atoms(i64::MIN).checked_neg(), None);
        assert_eq!(Credits::from_whole(i64::MAX), None);
        assert_eq!(Credits::checked_sum([Credits::MAX, Credits::MAX]), None);
    }

    proptest! {
        #[test]
        fn eight_decimals_survive_a_round_trip(hundred_millionths in -100_000_000_000_000_000_i64..100_000_000_000_000_000) {
            let amount = Credits::from_atoms(hundred_millionths * 72);
            prop_assert_eq!(amount.to_string().parse::<Credits>(), Ok(amount));
        }

        #[test]
        fn printed_amounts_are_read_back(atoms: i64) {
            let amount = Credits::from_atoms(atoms);
            prop_assert_eq!(Credits::from_printed(&amount.to_string()), Ok(amount));
        }

        #[test]
        fn amounts_are_printed_as_their_decimals(atoms in i64::MIN..=i64::MAX, shift in 0..63_u32) {
            let amount = Credits::from_atoms(atoms >> shift);
            prop_assert_eq!(amount.to_string(), amount.to_decimal().to_string());
            prop_assert_eq!(format!("{amount:>24}"), format!("{:>24}", amount.to_decimal()));
            prop_assert_eq!(format!("{amount:.2}"), format!("{:.2}", amount.to_decimal()));
        }

        #[test]
        fn text_never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Credits>();
        }
    }

    #[test]
    fn error_shows_the_beginning_of_the_text() {
        let long = format!("\"{}\"", "x".repeat(100));
        let error = serde_json::from_str::<Credits>(&long).unwrap_err().to_string();
        assert!(error.contains(&long[..40]) && !error.contains(&long[..41]), "{error}");
    }
}
