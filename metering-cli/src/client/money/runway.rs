//! How long the balance lasts, from the response with the usage by day. The rule is [`Runway`]'s.

use metering_core::money::Runway;
use metering_core::{Credits, Day};
use serde::Deserialize;

use crate::client::money::amount::Amount;

/// The fields read from the response to `GET /credits/usage/summary`.
#[derive(Debug, Deserialize)]
pub(super) struct Recent {
    by_day: Vec<DayUsage>,
}

/// A UTC day.
#[derive(Debug, Deserialize)]
struct DayUsage {
    day: String,
    credits_used: Amount,
}

impl Recent {
    /// How long `balance` lasts; `None` without a number of days to show.
    pub(super) fn runway(&self, balance: &Amount, today: Day) -> Option<Runway> {
        let used = |day: &DayUsage| Some((day.day.parse::<Day>().ok()?, credits(&day.credits_used)?));
        let used: Vec<(Day, Credits)> = self.by_day.iter().map(used).collect::<Option<_>>()?;
        let runway = Runway::of(credits(balance)?, used, today);
        matches!(runway, Runway::Days(_)).then_some(runway)
    }
}

fn credits(amount: &Amount) -> Option<Credits> {
    Credits::from_printed(&amount.to_string()).ok()
}
