use metering_core::catalogue::VolumeTiers;
use metering_core::charging::Volume;
use metering_core::clock::Month;
use metering_core::money::Credits;

/// The requests of a month to a route, with the price of each place that was given back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    pub(super) month: Month,
    pub(super) requests: u32,
    /// In ascending order.
    pub(super) returned: Vec<i64>,
}

impl Counted {
    pub(crate) fn volume(&self) -> Volume {
        let places = self.returned.chunk_by(|one, next| one == next).map(|same| format!("{}:{}", same[0], same.len()));
        let returned = places.collect::<Vec<_>>().join(",").parse().expect("they are in order");
        Volume { month: self.month, requests: self.requests, returned }
    }

    /// The places that are still to be taken again, and the number of the next place after all that were taken.
    pub(super) fn outstanding(&self, tiers: &VolumeTiers) -> (Vec<i64>, u32) {
        let has_price = |atoms: &i64| tiers.iter().any(|tier| tier.price.atoms() == *atoms);
        let mut returned: Vec<i64> = self.returned.iter().copied().filter(has_price).collect();
        loop {
            let taken = self.requests + u32::try_from(returned.len()).expect("sequences are short");
            let last = returned.iter().position(|atoms| taken > 0 && *atoms == price_of(tiers, taken).atoms());
            let Some(last) = last else { return (returned, taken + 1) };
            returned.remove(last);
        }
    }
}

pub(super) fn price_of(tiers: &VolumeTiers, number: u32) -> Credits {
    let tier = tiers.iter().find(|tier| tier.last.is_none_or(|last| number <= last));
    tier.expect("the last tier has no end").price
}
