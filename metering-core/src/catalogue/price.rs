//! Prices: weights, multipliers, and the kinds of pricing that a route can have.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::catalogue::usage_price::UsagePrice;
use crate::catalogue::volume_tiers::VolumeTiers;
use crate::money::credits::Credits;
use crate::money::decimal::{self, DecimalError};

const MILLIONTHS_PER_ONE: i64 = 1_000_000;
const MILLIONTH_DIGITS: u32 = 6;

/// The highest price that a resolver can request: the largest weight times the largest multiplier.
pub(crate) const MAX_PRICE: Credits = Credits::from_atoms(1_000 * 4_096 * 1_000_000);

/// The price of a request in base calls, before its multiplier: 0 to 1000, with up to six decimals.
///
/// ```
/// use metering_core::catalogue::{Multiplier, Weight};
///
/// let weight: Weight = "72".parse()?;
/// assert_eq!(weight.price(Multiplier::ONE)?.to_string(), "0.01");
/// assert_eq!(weight.price("2.5".parse()?)?.to_string(), "0.025");
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight {
    millionths: i64,
}

/// A factor on a request's price: 0 to 4096, with up to six decimals.
///
/// ```
/// use metering_core::Credits;
/// use metering_core::catalogue::Multiplier;
///
/// let price: Credits = "0.5".parse()?;
/// assert_eq!("1.5".parse::<Multiplier>()?.times(price)?.to_string(), "0.75");
/// assert!("4097".parse::<Multiplier>().is_err());
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Multiplier {
    millionths: i64,
}

impl Weight {
    /// Weight 1: the base call.
    pub const ONE: Self = Self { millionths: MILLIONTHS_PER_ONE };
    /// The largest weight.
    pub const MAX: Self = Self { millionths: 1_000 * MILLIONTHS_PER_ONE };

    /// The weight of a request with this price before its multiplier; `None` when no weight has this price.
    pub(crate) fn of_price(price: Credits) -> Option<Self> {
        (0..=Self::MAX.millionths).contains(&price.atoms()).then_some(Self { millionths: price.atoms() })
    }

    /// The price of a request of this weight: weight × multiplier × 1/7200 credit, exactly.
    ///
    /// # Errors
    /// When the product is not a whole number of atoms.
    pub fn price(self, multiplier: Multiplier) -> Result<Credits, DecimalError> {
        // A millionth of a base call is one atom.
        multiplier.times(Credits::from_atoms(self.millionths))
    }
}

impl Multiplier {
    /// No change.
    pub const ONE: Self = Self { millionths: MILLIONTHS_PER_ONE };
    /// 100: by default the largest multiplier that a resolver may send.
    pub const HUNDRED: Self = Self { millionths: 100 * MILLIONTHS_PER_ONE };
    /// The largest multiplier.
    pub const MAX: Self = Self { millionths: 4_096 * MILLIONTHS_PER_ONE };

    /// `price` times this, exactly.
    ///
    /// # Errors
    /// When the product is not a whole number of atoms, or out of range.
    pub fn times(self, price: Credits) -> Result<Credits, DecimalError> {
        let product = i128::from(price.atoms()) * i128::from(self.millionths);
        let one = i128::from(MILLIONTHS_PER_ONE);
        if product % one != 0 {
            return Err(DecimalError::TooFine);
        }
        i64::try_from(product / one).map(Credits::from_atoms).map_err(|_| DecimalError::OutOfRange)
    }
}

/// The part that both have in common. The text names them, in the error for a JSON number.
macro_rules! in_millionths {
    ($($Factor:ident: $what:literal;)+) => {$(
        impl $Factor {
            /// Whether it makes a request free.
            #[must_use]
            pub const fn is_zero(self) -> bool {
                self.millionths == 0
            }

            /// Its value as a decimal.
            pub(crate) fn decimal(self) -> Decimal {
                Decimal::new(self.millionths, MILLIONTH_DIGITS)
            }
        }

        impl FromStr for $Factor {
            type Err = DecimalError;

            fn from_str(text: &str) -> Result<Self, DecimalError> {
                let millionths = decimal::parse_units(text, MILLIONTHS_PER_ONE)?;
                let is_allowed = (0..=Self::MAX.millionths).contains(&millionths);
                if is_allowed { Ok(Self { millionths }) } else { Err(DecimalError::OutOfRange) }
            }
        }

        impl<'de> Deserialize<'de> for $Factor {
            /// Reads the text of a JSON number.
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let number = Box::<RawValue>::deserialize(deserializer)?;
                let problem = |error| serde::de::Error::custom(format_args!("not a usable {}: {error}", $what));
                number.get().parse().map_err(problem)
            }
        }

        impl fmt::Display for $Factor {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.decimal().normalize(), f)
            }
        }
    )+};
}

in_millionths! {
    Weight: "weight (0 to 1000, six decimals)";
    Multiplier: "multiplier (0 to 4096, six decimals)";
}

/// The multipliers of a route that costs more the further it looks back.
///
/// ```
/// use metering_core::catalogue::{LookbackTiers, Multiplier};
///
/// let (double, eightfold): (Multiplier, Multiplier) = ("2".parse()?, "8".parse()?);
/// let tiers = LookbackTiers::new(vec![(600, Multiplier::ONE), (3_600, double)], eightfold).unwrap();
/// assert_eq!(tiers.multiplier(600), Multiplier::ONE);
/// assert_eq!(tiers.multiplier(601), double);
/// assert_eq!(tiers.multiplier(86_400), eightfold);
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookbackTiers {
    /// `(at most this many seconds, multiplier)`, in ascending order.
    tiers: Vec<(u64, Multiplier)>,
    /// The multiplier beyond the last tier.
    overflow: Multiplier,
}

impl LookbackTiers {
    /// Makes tiers from bounds in ascending order, and the multiplier beyond the last one.
    ///
    /// Returns `None` when there are no tiers or their bounds do not increase.
    #[must_use]
    pub fn new(tiers: Vec<(u64, Multiplier)>, overflow: Multiplier) -> Option<Self> {
        let rising = tiers.windows(2).all(|pair| pair[0].0 < pair[1].0);
        (!tiers.is_empty() && rising).then_some(Self { tiers, overflow })
    }

    /// The multiplier for looking back `lookback_seconds`.
    #[must_use]
    pub fn multiplier(&self, lookback_seconds: u64) -> Multiplier {
        let index = self.tiers.partition_point(|(most, _)| *most < lookback_seconds);
        self.tiers.get(index).map_or(self.overflow, |(_, multiplier)| *multiplier)
    }

    /// The inclusive upper bound of each tier in seconds, in ascending order.
    pub fn bounds(&self) -> impl Iterator<Item = u64> + '_ {
        self.tiers.iter().map(|(most, _)| *most)
    }

    /// All multipliers that can apply.
    pub(crate) fn multipliers(&self) -> impl Iterator<Item = Multiplier> + '_ {
        self.tiers.iter().map(|(_, multiplier)| *multiplier).chain([self.overflow])
    }
}

/// How a route is priced.
///
/// ```
/// use metering_core::Catalogue;
/// use metering_core::catalogue::Pricing;
///
/// let catalogue = Catalogue::from_json(
///     r#"{"market": "M", "version": 1, "endpoints": [
///         {"path": "/stream/trades", "method": "GET", "metered": true, "sse": true,
///          "billing_modifier": {"type": "stream_session", "credits_per_connection": 0.01}}]}"#,
/// )?;
/// assert_eq!(catalogue.routes()[0].pricing, Pricing::PerConnection("0.01".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pricing {
    /// The same for every request.
    PerRequest(Credits),
    /// A weight times a multiplier that depends on a parameter.
    PerLookback {
        /// The weight before multiplication.
        weight: Weight,
        /// The parameter that says how many seconds the request looks back.
        param: String,
        /// The multipliers.
        tiers: LookbackTiers,
    },
    /// Once per connection of a stream.
    PerConnection(Credits),
    /// By the number of the request in the account's calendar month.
    ByVolume(Arc<VolumeTiers>),
    /// By the usage that the response reports. A hold is placed before the request runs, and the cost is captured after
    /// it.
    ByUsage(Arc<UsagePrice>),
    /// In a way that this version cannot read. Only in catalogues published by other servers.
    Unknown,
}

impl Pricing {
    /// The multipliers by lookback, if the price depends on it.
    #[must_use]
    pub const fn lookback_tiers(&self) -> Option<&LookbackTiers> {
        match self {
            Self::PerLookback { tiers, .. } => Some(tiers),
            Self::PerRequest(_) | Self::PerConnection(_) | Self::ByVolume(_) | Self::ByUsage(_) | Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_weight_times_multiplier_times_the_base_call() {
        // weight, multiplier, atoms
        let table = [
            ("1", "1", Ok(1_000_000)),
            ("5", "2048", Ok(10_240_000_000)),
            ("0.000001", "1", Ok(1)),
            ("1000", "4096", Ok(4_096_000_000_000)),
            ("0.5", "0.5", Ok(250_000)),
            ("0", "7", Ok(0)),
            ("0.000001", "0.5", Err(DecimalError::TooFine)),
        ];
        for (weight, multiplier, atoms) in table {
            let price = weight.parse::<Weight>().unwrap().price(multiplier.parse().unwrap());
            assert_eq!(price.map(Credits::atoms), atoms, "{weight} × {multiplier}");
        }
    }

    #[test]
    fn weights_and_multipliers_are_bounded() {
        for text in ["-1", "1000.000001", "0.0000001", "1e9", "x"] {
            assert!(text.parse::<Weight>().is_err(), "{text}");
        }
        for text in ["-0.5", "4096.1", "4097"] {
            assert!(text.parse::<Multiplier>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_tier_holds_up_to_and_including_its_seconds() {
        let two: Multiplier = "2".parse().unwrap();
        let eight: Multiplier = "8".parse().unwrap();
        let tiers = LookbackTiers::new(vec![(600, Multiplier::ONE), (1800, two)], eight).unwrap();
        let table =
            [(0, Multiplier::ONE), (600, Multiplier::ONE), (601, two), (1800, two), (1801, eight), (u64::MAX, eight)];
        for (seconds, expected) in table {
            assert_eq!(tiers.multiplier(seconds), expected, "{seconds}");
        }
        assert_eq!(tiers.bounds().collect::<Vec<_>>(), [600, 1800]);
        assert_eq!(LookbackTiers::new(vec![], eight), None);
        assert_eq!(LookbackTiers::new(vec![(600, two), (600, two)], eight), None);
    }

    #[test]
    fn only_zero_is_free() {
        for (text, free) in [("0", true), ("0.0", true), ("0.000001", false), ("1", false)] {
            assert_eq!(text.parse::<Weight>().unwrap().is_zero(), free, "{text}");
            assert_eq!(text.parse::<Multiplier>().unwrap().is_zero(), free, "{text}");
        }
    }

    #[test]
    fn weights_are_printed_as_written() {
        for text in ["0", "1", "0.000001", "2.5", "1000"] {
            assert_eq!(text.parse::<Weight>().unwrap().to_string(), text);
        }
    }
}
