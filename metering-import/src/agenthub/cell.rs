//! A value as SQLite stores it: columns have no fixed type, so a number may be text.

use metering_core::money::Credits;

use crate::amount::Real;

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Cell {
    /// No value. SQLite stores NaN this way too.
    #[default]
    Null,
    /// A whole number.
    Integer(i64),
    /// The bits of a double.
    Real(u64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob,
}

impl Cell {
    /// The value as an amount of credits, or why it is not one.
    pub(super) fn real(&self) -> Result<Real, String> {
        match self {
            Self::Null => Err("has no value, or is not a number".to_owned()),
            Self::Blob => Err("is binary data".to_owned()),
            Self::Integer(whole) => match Credits::from_whole(*whole) {
                Some(credits) => Ok(Real { credits, step: 1, remainder: 0 }),
                None => Err(format!("{whole} is out of range")),
            },
            Self::Real(bits) => Real::from_bits(*bits).map_err(|error| error.to_string()),
            Self::Text(text) => match (text.trim().parse::<Credits>(), text.trim().parse::<f64>()) {
                (Ok(credits), _) => Ok(Real { credits, step: 1, remainder: 0 }),
                (_, Ok(real)) => Real::from_bits(real.to_bits()).map_err(|error| error.to_string()),
                _ => Err(format!("{text:?} is not a number")),
            },
        }
    }

    /// The value as a whole number.
    pub(super) fn whole(&self) -> Option<i64> {
        match self {
            Self::Integer(whole) => Some(*whole),
            Self::Real(bits) => {
                let real = Real::from_bits(*bits).ok()?;
                let atoms = real.credits.atoms();
                let whole = atoms / metering_core::money::ATOMS_PER_CREDIT;
                (real.remainder == 0 && Credits::from_whole(whole) == Some(real.credits)).then_some(whole)
            }
            Self::Text(text) => text.trim().parse().ok(),
            Self::Null | Self::Blob => None,
        }
    }
}
