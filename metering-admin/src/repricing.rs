//! The cost of past usage with another catalogue: the rules, without a store.
//!
//! Only daily totals are kept, not single requests. A new amount is therefore exact only if the total determines the
//! price of every request; otherwise it is marked as an estimate.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use metering_core::Credits;
use metering_core::catalogue::{Catalogue, Pricing, Ratio, Route, fixed_price};
use metering_core::clock::{Day, Month};
use metering_core::usage::DailyTotal;

/// The price of past usage with a new catalogue, given the old one if available.
pub(crate) struct Repricing<'c> {
    old: Option<Routes<'c>>,
    new: Routes<'c>,
}

/// Routes by template and method.
type Routes<'c> = HashMap<(&'c str, &'c str), &'c Route>;

/// A daily total with the new prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repriced {
    /// This, to the atom.
    Exact(Credits),
    /// This, if every request that was recorded was delivered; or, for a price by usage, to within an atom per request.
    /// For volume tiers, also unless places that refunds gave back were left at the end of a month.
    Estimate(Credits),
    /// Unknown: the new price depends on data that was not recorded.
    Unknown,
    /// Nothing: the new catalogue does not have the route.
    Removed,
}

impl<'c> Repricing<'c> {
    pub(crate) fn new(old: Option<&'c Catalogue>, new: &'c Catalogue) -> Self {
        let routes = |catalogue: &'c Catalogue| {
            let routes = catalogue.routes().iter();
            routes.map(|route| ((&*route.template, &*route.method), route)).collect()
        };
        Self { old: old.map(routes), new: routes(new) }
    }

    /// Whether new prices depend on earlier requests of the month.
    pub(crate) fn depends_on_month(&self) -> bool {
        self.new.values().any(|route| route.volume_tiers().is_some())
    }

    /// `total` with the new prices. `month` counts the requests of its account, whose totals must be passed in the
    /// order of their days, from the first of a month on. `None` when that is out of range.
    pub(crate) fn of<'t>(&self, total: &'t DailyTotal, month: &mut MonthCounts<'t>) -> Option<Repriced> {
        let (key, model) = ((total.line.template(), &*total.line.http_method), total.line.model());
        let old = self.old.as_ref().map(|old| old.get(&key));
        let Some(new) = self.new.get(&key) else {
            // Charged without a route of either catalogue, for example by a resolver.
            return Some(if old == Some(None) { Repriced::Unknown } else { Repriced::Removed });
        };
        if !new.metered {
            return Some(Repriced::Exact(Credits::ZERO));
        }
        let old = old.flatten().filter(|route| route.metered).map(|route| &route.pricing);
        match &new.pricing {
            Pricing::ByVolume(tiers) if old != Some(&new.pricing) && !total.credits_used.is_negative() => {
                let calls = delivered(old, total.calls, total.credits_used).unwrap_or(total.calls);
                tiers.total(month.add(total, calls), calls).map(Repriced::Estimate)
            }
            pricing => {
                let old = old.map(|old| of_model(old, model));
                reprice(old.as_deref(), &of_model(pricing, model), total.calls, total.credits_used)
            }
        }
    }
}

/// How many requests an account has made to each route in a month.
#[derive(Debug, Default)]
pub(crate) struct MonthCounts<'t>(HashMap<(&'t str, &'t str, Month), u64>);

impl<'t> MonthCounts<'t> {
    /// Adds the requests of a day, and returns how many came before them.
    fn add(&mut self, total: &'t DailyTotal, calls: u64) -> u64 {
        let route = (&*total.line.route_template, &*total.line.http_method, total.day.month());
        let count = self.0.entry(route).or_default();
        let before = *count;
        *count = count.saturating_add(calls);
        before
    }
}

/// The price of a model, where models have their own; otherwise that of the route.
fn of_model<'p>(pricing: &'p Pricing, model: Option<&str>) -> Cow<'p, Pricing> {
    let own = match pricing {
        Pricing::ByUsage(price) => model.and_then(|model| price.of_listed(model)),
        _ => None,
    };
    own.map_or(Cow::Borrowed(pricing), |own| Cow::Owned(Pricing::ByUsage(Arc::clone(own))))
}

fn reprice(old: Option<&Pricing>, new: &Pricing, calls: u64, used: Credits) -> Option<Repriced> {
    if used.is_negative() {
        return Some(Repriced::Unknown);
    }
    if let Some(price) = fixed_price(new) {
        if price == Credits::ZERO {
            return Some(Repriced::Exact(price));
        }
        return match delivered(old, calls, used) {
            Some(delivered) => times(price, delivered).map(Repriced::Exact),
            None => times(price, calls).map(Repriced::Estimate),
        };
    }
    let Some(ratio) = old.and_then(|old| Ratio::between(old, new)) else { return Some(Repriced::Unknown) };
    match new {
        Pricing::ByUsage(_) if old != Some(new) => ratio.rounded_up(used).map(Repriced::Estimate),
        // An amount that is not a whole number of atoms was charged at a different price than the old catalogue's.
        _ => Some(ratio.applied_to(used).map_or(Repriced::Unknown, Repriced::Exact)),
    }
}

/// How many requests were delivered. Refunded ones are among the calls, and how many follows from a fixed old price.
fn delivered(old: Option<&Pricing>, calls: u64, used: Credits) -> Option<u64> {
    old.and_then(fixed_price).and_then(|old| calls_at(old, used)).filter(|paid| *paid <= calls)
}

/// How many requests at `price` add up to `used`.
fn calls_at(price: Credits, used: Credits) -> Option<u64> {
    let (price, used) = (price.atoms(), used.atoms());
    if price <= 0 || used % price != 0 { None } else { u64::try_from(used / price).ok() }
}

fn times(price: Credits, calls: u64) -> Option<Credits> {
    price.atoms().checked_mul(i64::try_from(calls).ok()?).map(Credits::from_atoms)
}

/// An account's day.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AccountDay {
    /// Bought and granted.
    pub(crate) added: Credits,
    pub(crate) calls: u64,
    /// The charge for the usage.
    pub(crate) before: Credits,
    /// The charge for it with the new prices.
    pub(crate) after: Credits,
}

/// The end of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// The first day with usage at whose end nothing was left.
    pub(crate) ran_out: Option<Day>,
    /// The balance after the last day.
    pub(crate) balance: Credits,
}

/// Replays days in ascending order from an opening balance. `cost` picks one of a day's two costs.
///
/// The order of events within a day is unknown: credits count from its start, and the balance is checked once, at its
/// end. `None` when a balance is out of range.
pub(crate) fn replay(
    opening: Credits,
    days: impl IntoIterator<Item = (Day, AccountDay)>,
    cost: impl Fn(&AccountDay) -> Credits,
) -> Option<Replayed> {
    let mut replayed = Replayed { ran_out: None, balance: opening };
    for (day, flow) in days {
        replayed.balance = replayed.balance.checked_add(flow.added)?.checked_sub(cost(&flow))?;
        if flow.calls > 0 && !replayed.balance.is_positive() {
            replayed.ran_out = replayed.ran_out.or(Some(day));
        }
    }
    Some(replayed)
}

#[cfg(test)]
mod tests;
