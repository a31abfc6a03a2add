//! Amounts of tokens, as people write them: exact, and comparable between tokens with different decimals.

use std::fmt;
use std::str::FromStr;

use metering_core::chains::TokenUnits;
use metering_core::payments::TokenAmount;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The maximum number of decimal places. Tokens with more are not used.
const PLACES: u8 = 18;

/// An amount of a token, such as `0.25`, in units of 10^-18. Amounts of several tokens can be added up because all have
/// about the same value: dollars, unless the user allows other tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Amount(u128);

impl Amount {
    /// One token.
    pub(crate) const ONE: Self = Self(10_u128.pow(PLACES as u32));

    /// The largest representable amount.
    pub(crate) const MAX: Self = Self(u128::MAX);

    /// An amount in the smallest unit of a token with this many decimals; `None` if it cannot be represented.
    pub(crate) fn of(units: TokenUnits, decimals: u8) -> Option<Self> {
        let missing = PLACES.checked_sub(decimals)?;
        units.get().checked_mul(10_u128.checked_pow(missing.into())?).map(Self)
    }

    /// Adds up. Saturates at the largest amount, which is above every limit.
    pub(crate) fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This minus `other`, or zero if that is more.
    pub(crate) fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Amount {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let amount = TokenAmount::parse(text).map_err(|_| "must be a decimal number above zero, such as 0.25")?;
        let units = amount.to_units(PLACES).ok_or("has more than 18 decimal places, or is too large")?;
        Ok(Self(units.get()))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&TokenUnits::new(self.0).to_human(PLACES))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn amounts_are_exact_and_compare_across_decimals() {
        assert_eq!(Amount::of(TokenUnits::new(250_000), 6), Some(amount("0.25")));
        assert_eq!(Amount::of(TokenUnits::new(250_000_000_000_000_000), 18), Some(amount("0.25")));
        assert!(amount("0.1").saturating_add(amount("0.2")) == amount("0.3"));
        assert!(Amount::of(TokenUnits::new(250_001), 6).unwrap() > amount("0.25"));
        assert_eq!(Amount::ONE.saturating_sub(amount("0.999999")).to_string(), "0.000001");
        assert_eq!(amount("0.1").saturating_sub(Amount::ONE), Amount::default());
        assert_eq!(amount("2.50").to_string(), "2.5");
    }

    #[test]
    fn what_cannot_be_exact_is_refused() {
        for text in ["", "0", "-1", "1,5", "$1", "NaN", "0.0000000000000000001", "1e40"] {
            assert!(text.parse::<Amount>().is_err(), "{text}");
        }
        assert_eq!(Amount::of(TokenUnits::MAX, 6), None);
        assert_eq!(Amount::of(TokenUnits::new(1), 19), None);
        let most = Amount::of(TokenUnits::MAX, 18).unwrap();
        assert_eq!(most.saturating_add(Amount::ONE), most);
    }
}
