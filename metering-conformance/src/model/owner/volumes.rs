//! Requests to routes with volume tiers in the model.

use std::time::Duration;

use metering_core::Charge;
use metering_core::catalogue::VolumeTiers;
use metering_core::charging::{CountedRoute, Volume};
use metering_core::clock::{Month, Timestamp};
use metering_core::money::Credits;

use super::Owner;
use super::counted::{Counted, price_of};

impl Owner {
    /// The requests to a route that count at `now`. A clock that lags by up to an hour counts in the newest month.
    fn counted(&self, route: &CountedRoute, now: Timestamp) -> Counted {
        let newest = self.volumes.get(route).cloned().unwrap_or_default();
        let month = now.day().month();
        let begins_within_the_hour = newest.month.start() <= now.saturating_add(Duration::from_secs(3_600));
        let stays = month == newest.month || (month < newest.month && begins_within_the_hour);
        if stays { newest } else { Counted { month, ..Counted::default() } }
    }

    /// The count of a route at `now`, as a receipt shows it.
    pub(super) fn volume(&self, route: &CountedRoute, now: Timestamp) -> Volume {
        self.counted(route, now).volume()
    }

    /// The price of a charge that was not accepted before.
    pub(super) fn price(&self, charge: &Charge, now: Timestamp) -> Credits {
        let Some(terms) = &charge.by_volume else { return charge.price };
        let (returned, next) = self.counted(&CountedRoute::of(&charge.line), now).outstanding(&terms.tiers);
        returned.first().map_or_else(|| price_of(&terms.tiers, next), |atoms| Credits::from_atoms(*atoms))
    }

    /// Counts an accepted request.
    pub(super) fn count(&mut self, route: CountedRoute, tiers: &VolumeTiers, now: Timestamp) -> Volume {
        let counted = self.counted(&route, now);
        let (returned, _) = counted.outstanding(tiers);
        let returned = returned.into_iter().skip(1).collect();
        let counted = Counted { requests: counted.requests + 1, returned, ..counted };
        let volume = counted.volume();
        self.volumes.insert(route, counted);
        volume
    }

    /// Gives back the place of a request of `month` that cost this.
    pub(crate) fn uncount(&mut self, route: &CountedRoute, month: Month, price: Credits) {
        let counted = self.volumes.get_mut(route).filter(|counted| counted.month == month && counted.requests > 0);
        let Some(Counted { requests, returned, .. }) = counted else { return };
        *requests -= 1;
        returned.push(price.atoms());
        returned.sort_unstable();
        let mut prices = returned.clone();
        prices.dedup();
        if let [.., cheaper, dearest] = prices[..]
            && prices.len() > VolumeTiers::MAX
        {
            returned.iter_mut().filter(|atoms| **atoms == dearest).for_each(|atoms| *atoms = cheaper);
        }
    }
}
