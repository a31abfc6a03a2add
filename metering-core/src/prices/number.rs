//! The number of a price version.

use crate::text_traits::text_traits;

/// The number of a price version: 1 for a store's first one, and without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PriceNumber(pub u32);

impl PriceNumber {
    /// The number of the first version.
    pub const FIRST: Self = Self(1);

    /// The number after this one.
    ///
    /// # Panics
    /// After 4,294,967,295 versions.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.checked_add(1).expect("a store has fewer than 2^32 price versions"))
    }
}

text_traits!(PriceNumber: Display);
