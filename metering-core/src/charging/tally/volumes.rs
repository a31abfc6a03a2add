//! Requests that a batch counts for routes with volume tiers, and the resulting prices.

use std::hash::Hash;

use super::Tally;
use super::touched::TouchedVolume;
use crate::catalogue::VolumeTiers;
use crate::charging::charge::Charge;
use crate::charging::posting::Remembered;
use crate::charging::refusal::Refusal;
use crate::charging::volume::{CountedRoute, Volume};
use crate::clock::Month;
use crate::money::credits::Credits;

impl<K: Copy + Ord + Hash, L: Clone + Ord + Hash> Tally<K, L> {
    /// Whether the count of a route must be loaded before a posting that has it
    /// ([`Charge::counted_route`](crate::Charge::counted_route),
    /// [`Refund::counted_route`](crate::charging::Refund::counted_route),
    /// [`HoldUpdate::counted_route`](crate::charging::HoldUpdate::counted_route)).
    #[must_use]
    pub(crate) fn lacks_volume(&self, account: K, route: &CountedRoute) -> bool {
        !self.volumes.contains_key(&(account, route.clone()))
    }

    /// Adds the stored count of a route, once per batch; the default if none is stored.
    pub(crate) fn load_volume(&mut self, account: K, route: CountedRoute, volume: Volume) {
        self.volumes.entry((account, route)).or_insert(TouchedVolume { volume, changed: false });
    }

    /// The count of a route in the month of the batch.
    pub(super) fn volume(&self, account: K, route: &CountedRoute) -> Volume {
        let touched = self.volumes.get(&(account, route.clone()));
        touched.expect("counts are loaded before their routes are charged").volume.clone().at(self.now)
    }

    /// The price of a charge: its own, or that of the next request's tier. A repeated request has the price that it
    /// had.
    ///
    /// # Errors
    /// When the client allows less than the tier's price.
    pub(super) fn price(&self, account: K, charge: &Charge, earlier: Option<Remembered>) -> Result<Credits, Refusal> {
        let Some(terms) = &charge.by_volume else { return Ok(charge.price) };
        if let Some(Remembered { result, .. }) = earlier {
            return Ok(result.charged);
        }
        let price = self.volume(account, &CountedRoute::of(&charge.line)).next_price(&terms.tiers);
        match terms.max_cost {
            Some(max_cost) if !max_cost.covers(price) => Err(Refusal::MaxCostExceeded { price, max_cost }),
            _ => Ok(price),
        }
    }

    /// Counts an accepted request with the price of [`Tally::price`]. Returns the count after it.
    pub(super) fn count_volume(&mut self, account: K, route: CountedRoute, tiers: &VolumeTiers) -> Volume {
        let volume = self.volume(account, &route).with_one_more(tiers);
        self.volumes.insert((account, route), TouchedVolume { volume: volume.clone(), changed: true });
        volume
    }

    /// Gives back the place of a request of `month` that was not served, if its route was counted. It cost `price`.
    pub(super) fn return_volume(&mut self, account: K, route: CountedRoute, month: Month, price: Credits) {
        if let Some(touched) = self.volumes.get_mut(&(account, route)) {
            let after = touched.volume.clone().without_one_of(month, price);
            touched.changed |= after != touched.volume;
            touched.volume = after;
        }
    }
}
