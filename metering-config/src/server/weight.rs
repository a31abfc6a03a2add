//! Configured weights and multipliers: exact, and never zero.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use metering_core::catalogue::{Multiplier, Weight};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A weight above 0: a whole number, or a string such as `"0.5"`. Fractional numbers are refused because TOML and JSON
/// parsers read them as floats.
pub type WeightSetting = FactorSetting<Weight>;

/// A multiplier above 0, read like a weight.
pub type MultiplierSetting = FactorSetting<Multiplier>;

/// A factor of a price, above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactorSetting<T>(T);

/// What a [`FactorSetting`] can be.
pub trait SettableFactor: FromStr<Err: fmt::Display> + fmt::Display {
    /// Its name in errors.
    const NAME: &'static str;

    /// Whether it makes requests free.
    fn is_zero(&self) -> bool;
}

impl SettableFactor for Weight {
    const NAME: &'static str = "weight";

    fn is_zero(&self) -> bool {
        Self::is_zero(*self)
    }
}

impl SettableFactor for Multiplier {
    const NAME: &'static str = "multiplier";

    fn is_zero(&self) -> bool {
        Self::is_zero(*self)
    }
}

impl<T: Copy> FactorSetting<T> {
    /// Wraps a factor; it must be above 0.
    #[must_use]
    pub const fn of(factor: T) -> Self {
        Self(factor)
    }

    /// The factor.
    #[must_use]
    pub const fn get(self) -> T {
        self.0
    }
}

impl<T: SettableFactor> Serialize for FactorSetting<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: SettableFactor> Deserialize<'de> for FactorSetting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FactorVisitor(PhantomData))
    }
}

struct FactorVisitor<T>(PhantomData<T>);

impl<T: SettableFactor> Visitor<'_> for FactorVisitor<T> {
    type Value = FactorSetting<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} as a whole number or a string such as \"0.5\"", T::NAME)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FactorSetting<T>, E> {
        let factor: T = text.parse().map_err(|error| E::custom(format_args!("{text:?}: {error}")))?;
        if factor.is_zero() {
            return Err(E::custom("must be above 0"));
        }
        Ok(FactorSetting(factor))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<FactorSetting<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<FactorSetting<T>, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_exact_and_above_zero() {
        let read = |json: &str| serde_json::from_str::<WeightSetting>(json).map(|weight| weight.get().to_string());
        assert_eq!(read("3").unwrap(), "3");
        assert_eq!(read("\"0.000001\"").unwrap(), "0.000001");
        for wrong in ["0", "\"0\"", "-1", "0.5", "\"1001\"", "\"x\"", "true"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(serde_json::from_str::<MultiplierSetting>("4096").unwrap().get(), Multiplier::MAX);
        assert!(serde_json::from_str::<MultiplierSetting>("4097").is_err());
    }
}
