//! The most that a request may cost, as set by its client. It is checked before anything is paid or charged.

use std::str::FromStr;

use crate::money::credits::Credits;
use crate::text_traits::text_traits;

/// The most that a request may cost, in credits.
///
/// It is rounded up to a whole atom, so a displayed price, rounded to ten decimals, covers the exact one.
///
/// ```
/// use metering_core::Credits;
/// use metering_core::charging::MaxCost;
///
/// let max_cost: MaxCost = "0.0001388889".parse()?; // how 1/7200 is printed
/// assert!(max_cost.covers(Credits::BASE_CALL));
/// assert!("a lot".parse::<MaxCost>().is_err());
/// # Ok::<(), metering_core::charging::MaxCostError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MaxCost(Credits);

/// The text is not an amount of credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an amount of credits, zero or more, such as 0.01")]
pub struct MaxCostError;

impl MaxCost {
    /// Whether a request of this price may be charged.
    #[must_use]
    pub fn covers(self, price: Credits) -> bool {
        price <= self.0
    }

    /// The amount.
    #[must_use]
    pub const fn credits(self) -> Credits {
        self.0
    }

    /// The error for a client whose request costs more than this or, if the price `is_maximum`, may cost more.
    pub(crate) fn exceeded_by(self, price: Credits, is_maximum: bool) -> String {
        let costs = if is_maximum { "may cost up to" } else { "costs" };
        format!("This request {costs} {price} credits, more than the {self} that it allows; nothing was charged.")
    }
}

impl FromStr for MaxCost {
    type Err = MaxCostError;

    fn from_str(text: &str) -> Result<Self, MaxCostError> {
        Credits::parse_rounding_up(text.trim_matches([' ', '\t'])).map(Self).map_err(|_| MaxCostError)
    }
}

text_traits!(MaxCost: Display);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_price_is_covered_by_what_is_printed_and_not_by_less() {
        for atoms in (0..5_000).chain([1_000_000, 5_000_000, 72_000_000, 7_199_999_999]) {
            let price = Credits::from_atoms(atoms);
            let printed: MaxCost = price.to_string().parse().unwrap();
            assert!(printed.covers(price), "{price}");
            assert!(!printed.covers(Credits::from_atoms(atoms + 2)), "{price}");
        }
    }

    #[test]
    fn nothing_that_is_not_an_amount_is_a_bound() {
        for text in ["", "-1", "-0.1", "1,5", ".5", "+1", "inf", "NaN", "0x10", "1 credit"] {
            assert_eq!(text.parse::<MaxCost>(), Err(MaxCostError), "{text}");
        }
        let tiny = format!("0.{}1", "0".repeat(80));
        for (text, atoms) in [("0", 0), (" 0.01 ", 72_000_000), ("1e-5", 72_000), ("1e20", i64::MAX), (&tiny, 1)] {
            assert_eq!(text.parse::<MaxCost>().unwrap().credits().atoms(), atoms, "{text}");
        }
    }
}
