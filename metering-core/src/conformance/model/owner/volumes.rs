//! Requests to routes with volume tiers in the model.

use std::time::Duration;

use crate::charging::charge::Charge;
use crate::charging::volume::{CountedRoute, Volume};
use crate::clock::{Month, Timestamp};
use crate::money::credits::Credits;

use super::Owner;

impl Owner {
    /// The requests to a route that count at `now`. A clock that lags by up to an hour counts in the newest month.
    pub(super) fn volume(&self, route: &CountedRoute, now: Timestamp) -> Volume {
        let newest = self.volumes.get(route).copied().unwrap_or_default();
        let month = now.day().month();
        let begins_within_the_hour = newest.month.start() <= now.saturating_add(Duration::from_secs(3_600));
        let stays = month == newest.month || (month < newest.month && begins_within_the_hour);
        if stays { newest } else { Volume { month, requests: 0 } }
    }

    /// The price of a charge that was not accepted before.
    pub(super) fn price(&self, charge: &Charge, now: Timestamp) -> Credits {
        let Some(terms) = &charge.by_volume else { return charge.price };
        let number = self.volume(&CountedRoute::of(&charge.line), now).requests + 1;
        let tier = terms.tiers.iter().find(|tier| tier.last.is_none_or(|last| number <= last));
        tier.expect("the last tier has no end").price
    }

    /// Counts an accepted request.
    pub(super) fn count(&mut self, route: CountedRoute, now: Timestamp) -> Volume {
        let Volume { month, requests } = self.volume(&route, now);
        let counted = Volume { month, requests: requests + 1 };
        self.volumes.insert(route, counted);
        counted
    }

    /// Gives back the place of a request of `month`.
    pub(in crate::conformance) fn uncount(&mut self, route: &CountedRoute, month: Month) {
        if let Some(volume) = self.volumes.get_mut(route).filter(|volume| volume.month == month) {
            volume.requests = volume.requests.saturating_sub(1);
        }
    }
}
