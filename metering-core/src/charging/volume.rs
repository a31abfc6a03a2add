//! How many requests an account has made to a route in the calendar month, for routes with volume tiers.
//!
//! The count is decided and written in the transaction of the charge, so no two requests have the same number,
//! whichever nodes they go through. A refund returns the request's charge, and frees its place in that tier.

use std::sync::Arc;
use std::time::Duration;

use crate::catalogue::{VolumeTier, VolumeTiers};
use crate::charging::max_cost::MaxCost;
use crate::charging::returned_places::{ReturnedPlaces, ReturnedPlacesError};
use crate::clock::{Month, Timestamp};
use crate::money::credits::Credits;
use crate::usage::UsageLine;

/// A route whose requests are counted: the usage row without the kind of client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountedRoute {
    /// The route's template.
    pub route_template: Arc<str>,
    /// The HTTP method.
    pub http_method: Arc<str>,
}

impl CountedRoute {
    /// The route of a usage line.
    #[must_use]
    pub fn of(line: &UsageLine) -> Self {
        let (route_template, http_method) = (Arc::clone(&line.route_template), Arc::clone(&line.http_method));
        Self { route_template, http_method }
    }
}

/// Makes a charge's price depend on how many requests came before it in the month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeTerms {
    /// The prices.
    pub tiers: Arc<VolumeTiers>,
    /// The most that the request may cost, as set by its client. It is refused if its tier costs more.
    pub max_cost: Option<MaxCost>,
}

/// The requests of an account to a route in the newest month that had any. Refunded requests are not among them.
///
/// While the catalogue keeps its prices, the cost of the account's kept requests of the month is the total of the tiers
/// for all places that were ever taken, less the prices of [`returned`](Self::returned) ones. So when no places are
/// left, it is the total of the tiers for [`requests`](Self::requests), whatever was refunded, and when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Volume {
    /// Which month.
    pub month: Month,
    /// Requests accepted in it.
    pub requests: u32,
    /// Places that refunds have freed, and that no request has taken since.
    pub returned: ReturnedPlaces,
}

/// The price of an account's next requests to a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextRequests {
    /// The price of the next request.
    pub(crate) price: Credits,
    /// How many requests have this price; `None` if all further ones do.
    pub(crate) left: Option<u32>,
    /// The price of a request after that.
    pub(crate) price_after: Option<Credits>,
}

impl Volume {
    /// How far a clock may be behind and still count in the newest month: a clock set back by minutes just after the
    /// beginning of a month does not give an account its allowance twice. A larger step back means that the newest
    /// reading was wrong; it must not take the allowance of the months until then.
    const LAG: Duration = Duration::from_secs(3_600);

    /// Reads the stored value. `returned` is [`Volume::returned_column`].
    ///
    /// # Errors
    /// When `returned` is malformed.
    pub fn from_columns(month: Month, requests: u32, returned: Option<&str>) -> Result<Self, ReturnedPlacesError> {
        let of_month = |text: &str| {
            let (of, places) = text.split_once(';').ok_or(ReturnedPlacesError)?;
            let of: i64 = of.parse().map_err(|_| ReturnedPlacesError)?;
            let places = places.parse()?;
            Ok(if of == month.unix_months() { places } else { ReturnedPlaces::default() })
        };
        let returned = returned.map(of_month).transpose()?.unwrap_or_default();
        Ok(Self { month, requests, returned })
    }

    /// The returned places as a store keeps them; `None` if there are none. They come with their month: a program that
    /// does not know them may begin another month in the same row.
    #[must_use]
    pub fn returned_column(&self) -> Option<String> {
        let Self { month, returned, .. } = self;
        (!returned.is_empty()).then(|| format!("{};{returned}", month.unix_months()))
    }

    /// The volume of the month of `now`, before any further request.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let month = now.day().month();
        let stepped_back = now.saturating_add(Self::LAG) < self.month.start();
        let begins = month > self.month || (month < self.month && stepped_back);
        if begins { Self { month, ..Self::default() } } else { self }
    }

    /// How many places of the month were taken, returned ones included.
    fn places(&self) -> u32 {
        self.requests.saturating_add(self.returned.count())
    }

    /// The same without returned places that the next requests would take at the same prices anyway: those at the end
    /// of the places that were taken. Places with a price that the catalogue no longer has are dropped, so new prices
    /// take effect immediately.
    fn trimmed(mut self, tiers: &VolumeTiers) -> Self {
        self.returned.retain_prices_of(tiers);
        while !self.returned.is_empty() {
            let last = self.places();
            let VolumeTier { first, price, .. } = tiers.tier(last);
            if self.returned.remove(price, last - first + 1) == 0 {
                break;
            }
        }
        self
    }

    /// The price of the next request.
    pub(crate) fn next_price(self, tiers: &VolumeTiers) -> Credits {
        self.next(tiers).price
    }

    /// The price of the next requests.
    pub(crate) fn next(self, tiers: &VolumeTiers) -> NextRequests {
        let volume = self.trimmed(tiers);
        let place = volume.places().saturating_add(1);
        let mut returned = volume.returned.iter();
        if let Some((price, left)) = returned.next() {
            let price_after = returned.next().map_or_else(|| tiers.price(place), |(price, _)| price);
            return NextRequests { price, left: Some(left), price_after: Some(price_after) };
        }
        let VolumeTier { last, price, .. } = tiers.tier(place);
        let left = last.map(|last| last.saturating_sub(volume.requests));
        NextRequests { price, left, price_after: last.map(|last| tiers.price(last.saturating_add(1))) }
    }

    /// How many further requests cost nothing.
    pub(crate) fn free_requests_left(self, tiers: &VolumeTiers) -> u32 {
        let volume = self.trimmed(tiers);
        let returned =
            volume.returned.iter().find(|(price, _)| *price == Credits::ZERO).map_or(0, |(_, places)| places);
        tiers.free_requests().saturating_sub(volume.places()).saturating_add(returned)
    }

    /// Counts an accepted request. It takes the cheapest returned place, or the next one.
    pub(crate) fn with_one_more(self, tiers: &VolumeTiers) -> Self {
        let mut volume = self.trimmed(tiers);
        volume.returned.take_cheapest();
        Self { requests: volume.requests.saturating_add(1), ..volume }
    }

    /// Gives back the place of a request of `month` that cost this. One of an earlier month no longer counts.
    pub(crate) fn without_one_of(mut self, month: Month, price: Credits) -> Self {
        if month == self.month && self.requests > 0 {
            self.requests -= 1;
            self.returned.add(price);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prop_assert_eq;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_month_begins_at_its_first_millisecond_and_a_lagging_clock_does_not_begin_it_again() {
        let november = at("2026-11-30T23:59:59.999Z").day().month();
        let december = november.next();
        let used = |month| Volume { month, requests: 7, returned: "0:2".parse().unwrap() };
        let fresh = |month| Volume { month, ..Volume::default() };
        // stored, now, counts in
        let table = [
            (used(november), "2026-11-01T00:00:00Z", used(november)),
            (used(november), "2026-11-30T23:59:59.999Z", used(november)),
            (used(november), "2026-12-01T00:00:00Z", fresh(december)),
            (used(november), "2028-12-01T00:00:00Z", fresh(at("2028-12-01T00:00:00Z").day().month())),
            (used(december), "2026-11-30T23:59:00Z", used(december)),
            (used(december), "2026-11-30T23:00:00Z", used(december)),
            (used(december), "2026-11-30T22:59:59.999Z", fresh(november)),
            (Volume::default(), "2026-11-01T00:00:00Z", fresh(november)),
        ];
        for (stored, now, expected) in table {
            assert_eq!(stored.clone().at(at(now)), expected, "{stored:?} at {now}");
        }
    }

    const MONTH: Month = Month::from_unix_months(682);

    fn atoms(atoms: i64) -> Credits {
        Credits::from_atoms(atoms)
    }

    fn volume(requests: u32, returned: &str) -> Volume {
        Volume { month: MONTH, requests, returned: returned.parse().unwrap() }
    }

    fn tiers(tiers: &[(u32, i64)], rest: i64) -> VolumeTiers {
        let tiers = tiers.iter().map(|(last, price)| (*last, atoms(*price))).collect();
        VolumeTiers::new(tiers, atoms(rest)).unwrap()
    }

    #[test]
    fn only_a_request_of_the_counted_month_gives_its_place_back() {
        assert_eq!(volume(3, "").without_one_of(MONTH, atoms(5)), volume(2, "5:1"));
        assert_eq!(volume(2, "5:1").without_one_of(MONTH, atoms(0)), volume(1, "0:1,5:1"));
        assert_eq!(volume(0, "").without_one_of(MONTH, atoms(5)), volume(0, ""));
        assert_eq!(volume(3, "").without_one_of(Month::from_unix_months(681), atoms(5)), volume(3, ""));
        assert_eq!(volume(u32::MAX, "").with_one_more(&tiers(&[(1, 0)], 5)), volume(u32::MAX, ""));
    }

    #[test]
    fn the_next_requests_take_returned_places_first() {
        let tiers = tiers(&[(10, 0), (20, 7)], 3);
        let next = |price, left, after: Option<i64>| (atoms(price), left, after.map(atoms));
        // stored, price of the next request and how many have it, what follows, free requests
        let table = [
            (volume(0, ""), next(0, Some(10), Some(7)), 10),
            (volume(9, ""), next(0, Some(1), Some(7)), 1),
            (volume(10, ""), next(7, Some(10), Some(3)), 0),
            (volume(20, ""), next(3, None, None), 0),
            // The last places that were taken are as good as never taken.
            (volume(9, "0:1"), next(0, Some(1), Some(7)), 1),
            (volume(5, "0:5,7:2"), next(0, Some(5), Some(7)), 5),
            (volume(0, "0:10,3:4,7:10"), next(0, Some(10), Some(7)), 10),
            (volume(25, "3:5"), next(3, None, None), 0),
            // Others are taken first, cheapest first.
            (volume(1, "0:10"), next(0, Some(10), Some(7)), 10),
            (volume(15, "0:2,7:4"), next(0, Some(2), Some(7)), 2),
            (volume(15, "7:6"), next(7, Some(6), Some(3)), 0),
            // The catalogue no longer has these prices.
            (volume(9, "1:3"), next(0, Some(1), Some(7)), 1),
            (volume(1, "0:10,8:1"), next(0, Some(10), Some(7)), 10),
        ];
        for (stored, expected, free) in table {
            let next = stored.clone().next(&tiers);
            assert_eq!((next.price, next.left, next.price_after), expected, "{stored:?}");
            assert_eq!(stored.clone().free_requests_left(&tiers), free, "{stored:?}");
            assert_eq!(stored.clone().next_price(&tiers), next.price, "{stored:?}");
        }
        assert_eq!(volume(1, "0:10").with_one_more(&tiers), volume(2, "0:9"));
        assert_eq!(volume(10, "0:1").with_one_more(&tiers), volume(11, ""));
        assert_eq!(volume(14, "0:2,7:4").with_one_more(&tiers), volume(15, "0:1"), "the last ones are as good as new");
        assert_eq!(volume(9, "").with_one_more(&tiers), volume(10, ""));
    }

    #[test]
    fn a_store_keeps_returned_places_with_their_month() {
        let read = |requests, returned: Option<&str>| Volume::from_columns(MONTH, requests, returned);
        for volume in [volume(0, ""), volume(7, "0:1"), volume(1, "0:10,500:4294967295")] {
            let column = volume.returned_column();
            assert_eq!(read(volume.requests, column.as_deref()), Ok(volume));
        }
        assert_eq!(volume(1, "0:10,500:2").returned_column().as_deref(), Some("682;0:10,500:2"));
        assert_eq!(volume(1, "").returned_column(), None);
        assert_eq!(read(1, Some("681;0:10")), Ok(volume(1, "")), "those of another month");
        for text in ["", "0:10", "682;", "x;0:10", "682;0:x", "681;0:x"] {
            let read = read(1, Some(text));
            assert!(read.is_err() || text == "682;", "{text}: {read:?}");
        }
    }

    /// The cost of a month's kept requests does not depend on which requests were refunded, nor on when.
    #[test]
    fn kept_requests_cost_the_total_of_their_tiers() {
        let of_month = |last: u32, prices: [i64; 3]| tiers(&[(last, prices[0]), (last + 3, prices[1])], prices[2]);
        // A kept request, or its refund, by its number.
        let steps = vec(option::weighted(0.4, 0..60_usize), 0..80);
        let sequences = (1..12_u32, [0..3_i64, 0..3_i64, 0..3_i64], steps);
        let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
        runner
            .run(&sequences, |(last, prices, steps)| {
                let tiers = of_month(last, prices);
                let (mut volume, mut kept) = (volume(0, ""), Vec::new());
                let charge = |volume: &mut Volume, kept: &mut Vec<Credits>| {
                    kept.push(volume.clone().next_price(&tiers));
                    *volume = volume.clone().with_one_more(&tiers);
                };
                let sum = |prices: &mut dyn Iterator<Item = Credits>| prices.map(Credits::atoms).sum::<i64>();
                let total = |places: u32| tiers.total(0, places.into()).unwrap().atoms();
                for step in steps {
                    match step {
                        Some(number) if !kept.is_empty() => {
                            let price = kept.swap_remove(number % kept.len());
                            volume = volume.without_one_of(MONTH, price);
                        }
                        _ => charge(&mut volume, &mut kept),
                    }
                    prop_assert_eq!(usize::try_from(volume.requests).unwrap(), kept.len());
                    let volume = volume.clone().trimmed(&tiers);
                    let returned: i64 =
                        volume.returned.iter().map(|(price, places)| price.atoms() * i64::from(places)).sum();
                    prop_assert_eq!(sum(&mut kept.iter().copied()) + returned, total(volume.places()));
                }
                while !volume.returned.is_empty() {
                    charge(&mut volume, &mut kept);
                }
                prop_assert_eq!(sum(&mut kept.iter().copied()), total(volume.requests));
                Ok(())
            })
            .unwrap();
    }
}
