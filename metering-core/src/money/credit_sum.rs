use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::money::credits::{Credits, decimal_of_atoms};

/// A sum of credits. It may exceed the range of [`Credits`], and is displayed in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CreditSum(i128);

impl CreditSum {
    /// The sum in atoms.
    #[must_use]
    pub const fn atoms(self) -> i128 {
        self.0
    }

    /// Adds an amount.
    pub fn add(&mut self, amount: Credits) {
        // 2^63 amounts of 2^63 atoms fit.
        self.0 += i128::from(amount.atoms());
    }
}

impl fmt::Display for CreditSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match decimal_of_atoms(self.0) {
            Some(decimal) => fmt::Display::fmt(&decimal, f),
            None => write!(f, "{} atoms", self.0),
        }
    }
}

impl Serialize for CreditSum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match decimal_of_atoms(self.0) {
            Some(decimal) => {
                RawValue::from_string(decimal.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
            None => serializer.collect_str(self),
        }
    }
}
