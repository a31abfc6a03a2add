//! Places in a route's month that refunds have freed, with the prices that they had.
//!
//! Without them, a refund would free the last place of the count, whatever the refunded request had cost: ten free
//! requests that are refunded after an eleventh was charged would leave nine free ones, not ten.

use std::fmt;
use std::str::FromStr;

use crate::catalogue::VolumeTiers;
use crate::money::credits::Credits;

/// How many places were freed at which price. The next requests take them, the cheapest first.
///
/// Its text form is for stores: `atoms:places`, by ascending price and separated by commas.
///
/// ```
/// use metering_core::charging::ReturnedPlaces;
///
/// let returned: ReturnedPlaces = "0:10,500:2".parse()?;
/// assert_eq!(returned.count(), 12);
/// assert_eq!(returned.to_string(), "0:10,500:2");
/// assert!("500:2,0:10".parse::<ReturnedPlaces>().is_err());
/// # Ok::<(), metering_core::charging::ReturnedPlacesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReturnedPlaces {
    /// `(price, places)`, by ascending price. No price occurs twice, and no price is without places. At most
    /// [`VolumeTiers::MAX`].
    places: Vec<(Credits, u32)>,
}

/// The text does not list returned places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("returned places are listed as atoms:places, by ascending price and separated by commas")]
pub struct ReturnedPlacesError;

impl ReturnedPlaces {
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.places.iter().fold(0, |sum, (_, places)| sum.saturating_add(*places))
    }

    /// Prices and places, the cheapest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Credits, u32)> + '_ {
        self.places.iter().copied()
    }

    /// Adds a place. If there are too many prices, which needs a new catalogue in the same month, the most expensive
    /// places get the price of the next cheaper ones.
    pub(crate) fn add(&mut self, price: Credits) {
        match self.places.binary_search_by_key(&price, |(price, _)| *price) {
            Ok(index) => self.places[index].1 = self.places[index].1.saturating_add(1),
            Err(index) => self.places.insert(index, (price, 1)),
        }
        if self.places.len() > VolumeTiers::MAX
            && let (Some((_, dearest)), Some((_, others))) = (self.places.pop(), self.places.last_mut())
        {
            *others = others.saturating_add(dearest);
        }
    }

    /// Takes the cheapest place, if there is one.
    pub(crate) fn take_cheapest(&mut self) {
        if let Some((price, _)) = self.places.first().copied() {
            self.remove(price, 1);
        }
    }

    /// Removes places of a price, and returns how many.
    pub(crate) fn remove(&mut self, price: Credits, at_most: u32) -> u32 {
        let Ok(index) = self.places.binary_search_by_key(&price, |(price, _)| *price) else { return 0 };
        let removed = self.places[index].1.min(at_most);
        self.places[index].1 -= removed;
        if self.places[index].1 == 0 {
            self.places.remove(index);
        }
        removed
    }

    /// Keeps only the places with a price of these tiers.
    pub(crate) fn retain_prices_of(&mut self, tiers: &VolumeTiers) {
        self.places.retain(|(price, _)| tiers.iter().any(|tier| tier.price == *price));
    }
}

impl fmt::Display for ReturnedPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (price, places)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}:{places}", price.atoms())?;
        }
        Ok(())
    }
}

impl FromStr for ReturnedPlaces {
    type Err = ReturnedPlacesError;

    fn from_str(text: &str) -> Result<Self, ReturnedPlacesError> {
        let pair = |pair: &str| {
            let (atoms, places) = pair.split_once(':')?;
            Some((Credits::from_atoms(atoms.parse().ok()?), places.parse().ok()?))
        };
        let places: Option<Vec<(Credits, u32)>> = match text {
            "" => Some(Vec::new()),
            _ => text.split(',').map(pair).collect(),
        };
        let places = places.ok_or(ReturnedPlacesError)?;
        let is_valid = places.len() <= VolumeTiers::MAX
            && places.iter().all(|(price, places)| !price.is_negative() && *places > 0)
            && places.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if is_valid { Ok(Self { places }) } else { Err(ReturnedPlacesError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returned(text: &str) -> ReturnedPlaces {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_added_and_taken_by_price() {
        let mut places = ReturnedPlaces::default();
        for atoms in [5, 0, 5, 3] {
            places.add(Credits::from_atoms(atoms));
        }
        assert_eq!((places.clone(), places.count()), (returned("0:1,3:1,5:2"), 4));
        places.take_cheapest();
        assert_eq!(places.remove(Credits::from_atoms(5), 1), 1);
        assert_eq!(places.remove(Credits::from_atoms(5), 9), 1);
        assert_eq!(places.remove(Credits::from_atoms(5), 9), 0);
        assert_eq!(places, returned("3:1"));
        places.take_cheapest();
        places.take_cheapest();
        assert_eq!((places.is_empty(), places.to_string()), (true, String::new()));
    }

    #[test]
    fn too_many_prices_are_rounded_down() {
        let mut places = ReturnedPlaces::default();
        for atoms in (1..=16).rev().chain([20, 20, 0]) {
            places.add(Credits::from_atoms(atoms));
        }
        let first: Vec<String> = (0..15).map(|atoms| format!("{atoms}:1")).collect();
        assert_eq!(places.to_string(), format!("{},15:4", first.join(",")));
        assert_eq!(places.count(), 19);
        let mut full = returned("7:4294967295");
        full.add(Credits::from_atoms(7));
        full.add(Credits::from_atoms(8));
        assert_eq!((full.count(), full), (u32::MAX, returned("7:4294967295,8:1")));
    }

    #[test]
    fn only_lists_in_order_are_read() {
        for text in ["", "0:1", "0:10,500:2,9223372036854775807:4294967295"] {
            assert_eq!(returned(text).to_string(), text);
        }
        let seventeen: Vec<String> = (0..17).map(|atoms| format!("{atoms}:1")).collect();
        let wrong =
            ["0", "0:0", "-1:1", "1:1,0:1", "1:1,1:1", "0:4294967296", "0:1,", ",0:1", "x:1", &seventeen.join(",")];
        for text in wrong {
            assert_eq!(text.parse::<ReturnedPlaces>(), Err(ReturnedPlacesError), "{text}");
        }
    }
}
