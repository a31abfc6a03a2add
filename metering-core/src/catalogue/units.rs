//! Counts of units, their prices, and the exact cost of both.
//!
//! A unit price has at most 18 decimals and a count at most nine, so every cost is a whole number of 10⁻²⁷ credits. It
//! is added up in integers and rounded up to an atom once, at the end.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::money::credits::{ATOMS_PER_CREDIT, Credits};
use crate::money::decimal::{self, DecimalError};

/// Decimals of a unit price.
const PRICE_DECIMALS: u32 = 18;
/// Decimals that the price of a million has less.
const MILLION_DECIMALS: u32 = 6;
/// Decimals of a count.
const COUNT_DECIMALS: u32 = 9;
const BILLION: u128 = 10_u128.pow(COUNT_DECIMALS);
/// The largest unit price, 1000 credits.
const PRICE_MAX: u128 = 1_000 * 10_u128.pow(PRICE_DECIMALS);

/// The price of one unit: 0 to 1000 credits, with up to 18 decimals.
///
/// ```
/// use metering_core::catalogue::UnitPrice;
///
/// let price: UnitPrice = "0.00000025".parse()?;
/// assert_eq!(price.to_string(), "0.00000025");
/// assert!("0.0000000000000000001".parse::<UnitPrice>().is_err()); // 19 decimals
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitPrice {
    /// In 10⁻¹⁸ credits.
    attocredits: u128,
}

/// A number of units, zero or more, with up to nine decimals.
///
/// More decimals are rounded up: many services report seconds as a binary float, such as `8.470000267028809`.
///
/// ```
/// use metering_core::catalogue::Count;
///
/// assert_eq!("1.5e3".parse::<Count>()?, Count::from(1500));
/// assert_eq!("8.470000267028809".parse::<Count>()?.to_string(), "8.470000268");
/// assert!("-1".parse::<Count>().is_err());
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Count {
    billionths: u128,
}

/// How many of each unit a request used. A unit that is missing counts as zero.
///
/// ```
/// use metering_core::catalogue::{Count, Counts};
///
/// let counts: Counts = serde_json::from_str(r#"{"input_tokens": 12, "seconds": "0.5"}"#)?;
/// assert_eq!(counts.get("input_tokens"), Some(Count::from(12)));
/// assert_eq!(serde_json::to_string(&counts)?, r#"{"input_tokens":12,"seconds":0.5}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<String, Count>);

impl UnitPrice {
    /// Whether the unit is free.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.attocredits == 0
    }

    /// The price of one unit, from the text of the price of a million.
    ///
    /// ```
    /// use metering_core::catalogue::UnitPrice;
    ///
    /// assert_eq!(UnitPrice::of_million("0.25")?, "0.00000025".parse()?);
    /// # Ok::<(), metering_core::money::DecimalError>(())
    /// ```
    ///
    /// # Errors
    /// When it is not a decimal number, has more than 12 decimals, or is out of range.
    pub fn of_million(text: &str) -> Result<Self, DecimalError> {
        Self::scaled(text, PRICE_DECIMALS - MILLION_DECIMALS)
    }

    /// A price whose last possible decimal is an attocredit.
    fn scaled(text: &str, decimals: u32) -> Result<Self, DecimalError> {
        let value = decimal::parse_exact(text)?.normalize();
        let mantissa = u128::try_from(value.mantissa()).map_err(|_| DecimalError::OutOfRange)?;
        let missing = decimals.checked_sub(value.scale()).ok_or(DecimalError::TooFine)?;
        let attocredits = mantissa.checked_mul(10_u128.pow(missing)).filter(|price| *price <= PRICE_MAX);
        attocredits.map(|attocredits| Self { attocredits }).ok_or(DecimalError::OutOfRange)
    }

    /// The price in 10⁻¹⁸ credits.
    pub(super) const fn attocredits(self) -> u128 {
        self.attocredits
    }
}

impl FromStr for UnitPrice {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        Self::scaled(text, PRICE_DECIMALS)
    }
}

impl fmt::Display for UnitPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal_text(self.attocredits, PRICE_DECIMALS))
    }
}

impl Count {
    /// A number or a string with a number, from its JSON text.
    ///
    /// # Errors
    /// When it is anything else, negative or too large.
    pub(super) fn from_json(json: &RawValue) -> Result<Self, DecimalError> {
        number_text(json)?.parse()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.billionths == 0
    }

    pub(super) const fn from_billionths(billionths: u128) -> Self {
        Self { billionths }
    }

    /// The count, rounded up to a whole number; the largest one if it is larger.
    pub(super) fn round_up(self) -> u32 {
        u32::try_from(self.billionths.div_ceil(BILLION)).unwrap_or(u32::MAX)
    }

    pub(super) const fn billionths(self) -> u128 {
        self.billionths
    }

    /// The sum. A value too large to represent is far above any chargeable amount.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self { billionths: self.billionths.saturating_add(other.billionths) }
    }

    /// The difference, at least zero.
    pub(super) const fn minus(self, other: Self) -> Self {
        Self { billionths: self.billionths.saturating_sub(other.billionths) }
    }
}

impl From<u64> for Count {
    fn from(count: u64) -> Self {
        Self { billionths: u128::from(count) * BILLION }
    }
}

impl FromStr for Count {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        Ok(Self { billionths: decimal::parse_rounding_up(text, 1_000_000_000)? })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal_text(self.billionths, COUNT_DECIMALS))
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(&json).map_err(|error| serde::de::Error::custom(format_args!("not a count of units: {error}")))
    }
}

impl Counts {
    /// How many of this unit, if it was counted.
    #[must_use]
    pub fn get(&self, unit: &str) -> Option<Count> {
        self.0.get(unit).copied()
    }

    /// Each unit and its count, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Count)> {
        self.0.iter().map(|(unit, count)| (unit.as_str(), *count))
    }

    /// Whether no unit was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<U: Into<String>> FromIterator<(U, Count)> for Counts {
    fn from_iter<I: IntoIterator<Item = (U, Count)>>(counts: I) -> Self {
        Self(counts.into_iter().map(|(unit, count)| (unit.into(), count)).collect())
    }
}

/// An exact cost in 10⁻²⁷ credits. `None` after an overflow, which is far above [`Credits::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExactCost(Option<u128>);

impl ExactCost {
    pub(super) const ZERO: Self = Self(Some(0));

    /// This plus the cost of `count` units.
    pub(super) fn plus(self, count: Count, price: UnitPrice) -> Self {
        let cost = || self.0?.checked_add(count.billionths.checked_mul(price.attocredits)?);
        // An overflow of a part is an overflow of the sum; nothing costs nothing, however large the count is.
        Self(if price.is_zero() { self.0 } else { cost() })
    }

    /// This times `factor`, rounded up to 10⁻²⁷ credits. Rounding up again later yields the same atoms as rounding
    /// once.
    pub(super) fn times(self, factor: Count) -> Self {
        let product = || {
            // The factor as whole and billionths, so no intermediate product is larger than the result.
            let (whole, billionths) = (factor.billionths / BILLION, factor.billionths % BILLION);
            let (high, low) = (self.0? / BILLION, self.0? % BILLION);
            let exact = high.checked_mul(factor.billionths)?.checked_add(low.checked_mul(whole)?)?;
            exact.checked_add((low * billionths).div_ceil(BILLION))
        };
        Self(product())
    }

    /// The cost in credits, rounded up to an atom; [`Credits::MAX`] when it is larger.
    pub(super) fn round_up(self) -> Credits {
        // An atom is 10¹⁹ / 72 of the smallest costs.
        const COSTS_PER_72_ATOMS: u128 = 10_u128.pow(27) / (ATOMS_PER_CREDIT as u128 / 72);
        let Some(cost) = self.0 else { return Credits::MAX };
        let atoms = cost / COSTS_PER_72_ATOMS * 72 + (cost % COSTS_PER_72_ATOMS * 72).div_ceil(COSTS_PER_72_ATOMS);
        i64::try_from(atoms).map_or(Credits::MAX, Credits::from_atoms)
    }
}

/// The text of a JSON number, or of a JSON string that should have a number.
pub(super) fn number_text(json: &RawValue) -> Result<String, DecimalError> {
    let text = json.get();
    if text.starts_with('"') {
        return serde_json::from_str(text).map_err(|_| DecimalError::Malformed);
    }
    Ok(text.to_owned())
}

/// `value` × 10^-`decimals`, without trailing zeros.
fn decimal_text(value: u128, decimals: u32) -> String {
    let one = 10_u128.pow(decimals);
    let text = format!("{}.{:0width$}", value / one, value % one, width = decimals as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
