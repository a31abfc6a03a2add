//! Volume tiers: the price of a request by how many requests an account has made to a route in the calendar month.
//!
//! Pricing is graduated: each request has the price of the tier that its number is in, so reaching a new tier does not
//! change the price of earlier requests. A first tier that costs nothing is a free allowance.

use std::fmt;

use crate::money::credits::Credits;

/// The prices of a route's requests by their number in the calendar month (UTC), counted per account from 1.
///
/// ```
/// use metering_core::Credits;
/// use metering_core::catalogue::VolumeTiers;
///
/// let tiers = VolumeTiers::new(vec![(1_000, Credits::ZERO)], "0.001".parse()?).ok_or("not in order")?;
/// assert_eq!(tiers.price(1_000), Credits::ZERO);
/// assert_eq!(tiers.price(1_001).to_string(), "0.001");
/// assert_eq!(tiers.free_requests(), 1_000);
/// assert_eq!(tiers.to_string(), "0 for requests 1 to 1000 of a month, then 0.001");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeTiers {
    /// `(the last request that has this price, price)`, in ascending order.
    tiers: Vec<(u32, Credits)>,
    /// The price beyond the last tier.
    rest: Credits,
}

/// One tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeTier {
    /// The number of its first request in the month, from 1.
    pub first: u32,
    /// The number of its last request; `None` for the last tier.
    pub last: Option<u32>,
    /// The price of each.
    pub price: Credits,
}

impl VolumeTiers {
    /// How many tiers a route can have, the last one included.
    pub const MAX: usize = 16;

    /// Makes tiers from the last request of each, in ascending order, and the price beyond the last one.
    ///
    /// Returns `None` when there are no tiers or more than [`VolumeTiers::MAX`], when their bounds do not increase from
    /// 1, or when a price is negative.
    #[must_use]
    pub fn new(tiers: Vec<(u32, Credits)>, rest: Credits) -> Option<Self> {
        let rising =
            tiers.windows(2).all(|pair| pair[0].0 < pair[1].0) && tiers.first().is_some_and(|first| first.0 > 0);
        let fits =
            tiers.len() < Self::MAX && !rest.is_negative() && !tiers.iter().any(|(_, price)| price.is_negative());
        (rising && fits).then_some(Self { tiers, rest })
    }

    /// The price of the request with this number in the month, from 1.
    #[must_use]
    pub fn price(&self, number: u32) -> Credits {
        self.tier(number).price
    }

    /// The tier of the request with this number in the month, from 1.
    #[must_use]
    pub fn tier(&self, number: u32) -> VolumeTier {
        let index = self.tiers.partition_point(|(last, _)| *last < number);
        let before = index.checked_sub(1).map_or(0, |index| self.tiers[index].0);
        let (last, price) = self.tiers.get(index).map_or((None, self.rest), |(last, price)| (Some(*last), *price));
        VolumeTier { first: before.saturating_add(1), last, price }
    }

    /// The highest price.
    #[must_use]
    pub fn max(&self) -> Credits {
        self.tiers.iter().map(|(_, price)| *price).fold(self.rest, Credits::max)
    }

    /// How many requests cost nothing at the beginning of a month: the free allowance.
    #[must_use]
    pub fn free_requests(&self) -> u32 {
        let paid = |tier: &VolumeTier| tier.price.is_positive();
        self.iter().find(paid).map_or(u32::MAX, |tier| tier.first - 1)
    }

    /// The price of `calls` requests after the first `before` ones of the month; `None` when it is out of range.
    #[must_use]
    pub fn total(&self, before: u64, calls: u64) -> Option<Credits> {
        let (from, to) = (before, before.checked_add(calls)?);
        let mut total = Credits::ZERO;
        for tier in self.iter() {
            let first = from.max(u64::from(tier.first) - 1);
            let last = to.min(tier.last.map_or(u64::MAX, u64::from));
            let price = tier.price.atoms().checked_mul(i64::try_from(last.saturating_sub(first)).ok()?)?;
            total = total.checked_add(Credits::from_atoms(price))?;
        }
        Some(total)
    }

    /// All tiers, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = VolumeTier> + '_ {
        let lasts = self.tiers.iter().map(|(last, price)| (Some(*last), *price)).chain([(None, self.rest)]);
        let firsts = std::iter::once(0).chain(self.tiers.iter().map(|(last, _)| *last));
        lasts.zip(firsts).map(|((last, price), before)| VolumeTier { first: before.saturating_add(1), last, price })
    }
}

impl fmt::Display for VolumeTiers {
    /// For people: `0 for requests 1 to 1000 of a month, then 0.001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for VolumeTier { first, last, price } in self.iter() {
            match last {
                Some(last) if first == 1 => write!(f, "{price} for requests 1 to {last} of a month, ")?,
                Some(last) => write!(f, "{price} up to {last}, ")?,
                None => write!(f, "then {price}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atoms(tiers: &[(u32, i64)], rest: i64) -> Option<VolumeTiers> {
        let tiers = tiers.iter().map(|(last, price)| (*last, Credits::from_atoms(*price))).collect();
        VolumeTiers::new(tiers, Credits::from_atoms(rest))
    }

    #[test]
    fn a_request_has_the_price_of_its_own_tier() {
        let tiers = atoms(&[(10, 0), (20, 7), (u32::MAX - 1, 3)], 9).unwrap();
        // request, price
        let table = [(1, 0), (10, 0), (11, 7), (20, 7), (21, 3), (u32::MAX - 1, 3), (u32::MAX, 9)];
        for (number, price) in table {
            assert_eq!(tiers.price(number), Credits::from_atoms(price), "{number}");
            let within = |tier: &VolumeTier| tier.first <= number && tier.last.is_none_or(|last| number <= last);
            assert_eq!(Some(tiers.tier(number)), tiers.iter().find(within), "{number}");
        }
        assert_eq!((tiers.max(), tiers.free_requests()), (Credits::from_atoms(9), 10));
        assert_eq!(atoms(&[(10, 5)], 0).unwrap().free_requests(), 0);
        assert_eq!(atoms(&[(10, 0)], 0).unwrap().free_requests(), u32::MAX);
    }

    #[test]
    fn a_total_is_the_sum_of_its_requests() {
        let tiers = atoms(&[(3, 0), (5, 7)], 2).unwrap();
        for before in 0..8 {
            for calls in 0..8 {
                let sum: i64 = (before + 1..=before + calls).map(|number| tiers.price(number).atoms()).sum();
                let total = tiers.total(before.into(), calls.into());
                assert_eq!(total, Some(Credits::from_atoms(sum)), "{calls} after {before}");
            }
        }
        assert_eq!(tiers.total(0, u64::MAX), None);
        assert_eq!(tiers.total(u64::MAX, 1), None);
        assert_eq!(atoms(&[(3, 0)], i64::MAX).unwrap().total(0, 5), None);
    }

    #[test]
    fn tiers_must_rise_and_cost_nothing_negative() {
        assert!(atoms(&[], 1).is_none());
        assert!(atoms(&[(0, 1)], 1).is_none());
        assert!(atoms(&[(5, 1), (5, 2)], 1).is_none());
        assert!(atoms(&[(5, -1)], 1).is_none());
        assert!(atoms(&[(5, 1)], -1).is_none());
        let many = |count: u32| (1..=count).map(|last| (last, 1)).collect::<Vec<_>>();
        assert!(atoms(&many(15), 0).is_some());
        assert!(atoms(&many(16), 0).is_none());
    }
}
