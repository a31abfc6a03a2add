//! On-chain amounts: whole numbers of a token's smallest unit.

use std::str::FromStr;

use crate::text_traits::text_traits;

/// An amount in a token's smallest unit (wei, for an 18-decimal coin); a decimal string in JSON.
///
/// 128 bits are enough for the price of any plan. On-chain amounts have 256 bits: larger ones are read as
/// [`TokenUnits::MAX`], which no quote has and which covers every price.
///
/// ```
/// use metering_core::chains::TokenUnits;
///
/// let amount: TokenUnits = "5003817".parse()?;
/// assert_eq!(amount.get(), 5_003_817);
/// assert_eq!(serde_json::to_string(&amount).unwrap(), r#""5003817""#);
/// # Ok::<(), metering_core::chains::TokenUnitsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TokenUnits(u128);

/// The text is not an amount of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number of a token's smallest unit, in decimal digits")]
pub struct TokenUnitsError;

impl TokenUnits {
    /// No units.
    pub const ZERO: Self = Self(0);
    /// This amount or more.
    pub const MAX: Self = Self(u128::MAX);

    /// An amount of `units`.
    #[must_use]
    pub const fn new(units: u128) -> Self {
        Self(units)
    }

    /// The number of units.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// Decodes a 256-bit big-endian word, the encoding of amounts on chain.
    #[must_use]
    pub fn from_word(word: [u8; 32]) -> Self {
        let (high, low) = word.split_at(16);
        match <[u8; 16]>::try_from(low) {
            Ok(low) if high.iter().all(|byte| *byte == 0) => Self(u128::from_be_bytes(low)),
            _ => Self::MAX,
        }
    }

    /// The amount in tokens, for a token with `decimals` decimals; trailing zeros are dropped: `5.003817`.
    ///
    /// ```
    /// use metering_core::chains::TokenUnits;
    ///
    /// assert_eq!(TokenUnits::new(5_003_817).to_human(6), "5.003817");
    /// assert_eq!(TokenUnits::new(5_000_000).to_human(6), "5");
    /// ```
    #[must_use]
    pub fn to_human(self, decimals: u8) -> String {
        let places = usize::from(decimals);
        let digits = format!("{:0>width$}", self.0, width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        match fraction.trim_end_matches('0') {
            "" => whole.to_owned(),
            fraction => format!("{whole}.{fraction}"),
        }
    }
}

impl FromStr for TokenUnits {
    type Err = TokenUnitsError;

    fn from_str(text: &str) -> Result<Self, TokenUnitsError> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TokenUnitsError);
        }
        text.parse().map(Self).map_err(|_| TokenUnitsError)
    }
}

text_traits!(TokenUnits: Display, Serialize, Deserialize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_in_human_units() {
        // units, decimals, human
        let table = [
            (5_003_817, 6, "5.003817"),
            (5_000_000, 6, "5"),
            (17, 6, "0.000017"),
            (0, 6, "0"),
            (12, 0, "12"),
            (2_500_003_817_000_000, 18, "0.002500003817"),
            (u128::MAX, 0, "340282366920938463463374607431768211455"),
        ];
        for (units, decimals, human) in table {
            assert_eq!(TokenUnits::new(units).to_human(decimals), human);
        }
    }

    #[test]
    fn words_beyond_128_bits_are_the_largest_amount() {
        let mut word = [0; 32];
        word[31] = 7;
        assert_eq!(TokenUnits::from_word(word), TokenUnits::new(7));
        word[15] = 1;
        assert_eq!(TokenUnits::from_word(word), TokenUnits::MAX);
        assert_eq!(TokenUnits::from_word([0xff; 32]), TokenUnits::MAX);
    }

    #[test]
    fn only_digits_are_amounts() {
        assert_eq!("5003817".parse(), Ok(TokenUnits::new(5_003_817)));
        for text in ["", "-1", "+1", "1.5", "1e6", "0x10", " 1", "340282366920938463463374607431768211456"] {
            assert_eq!(text.parse::<TokenUnits>(), Err(TokenUnitsError), "{text:?}");
        }
    }
}
