//! How many requests an account has made to a route in the calendar month, for routes with volume tiers.
//!
//! The count is decided and written in the transaction of the charge, so no two requests have the same number, whichever
//! nodes they go through. A refund gives back what its request was charged, and its place in the count.

use std::sync::Arc;
use std::time::Duration;

use crate::catalogue::{VolumeTier, VolumeTiers};
use crate::charging::max_cost::MaxCost;
use crate::clock::{Month, Timestamp};
use crate::money::credits::Credits;
use crate::usage::UsageLine;

/// A route whose requests are counted: what their usage is booked on, without the kind of client.
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
    /// The most that the request may cost, as its client says. It is refused if its tier costs more.
    pub max_cost: Option<MaxCost>,
}

/// The requests of an account to a route in the newest month that had any. Refunded requests are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Volume {
    /// Which month.
    pub month: Month,
    /// Requests accepted in it.
    pub requests: u32,
}

impl Volume {
    /// How far a clock may be behind and still count in the newest month: a clock set back by minutes just after the
    /// beginning of a month does not give an account its allowance twice. A larger step back means that the newest
    /// reading was wrong; it must not take the allowance of the months until then.
    const LAG: Duration = Duration::from_secs(3_600);

    /// The volume of the month of `now`, before any further request.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let month = now.day().month();
        let stepped_back = now.saturating_add(Self::LAG) < self.month.start();
        if month > self.month || (month < self.month && stepped_back) { Self { month, requests: 0 } } else { self }
    }

    /// The price of the next request.
    pub(crate) fn next_price(self, tiers: &VolumeTiers) -> Credits {
        tiers.price(self.requests.saturating_add(1))
    }

    /// The tier of the next request.
    pub(crate) fn next_tier(self, tiers: &VolumeTiers) -> VolumeTier {
        tiers.tier(self.requests.saturating_add(1))
    }

    /// Counts an accepted request.
    pub(crate) const fn with_one_more(self) -> Self {
        Self { requests: self.requests.saturating_add(1), ..self }
    }

    /// Gives back the place of a request of `month`. One of an earlier month no longer counts.
    pub(crate) fn without_one_of(self, month: Month) -> Self {
        if month == self.month { Self { requests: self.requests.saturating_sub(1), ..self } } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_month_begins_at_its_first_millisecond_and_a_lagging_clock_does_not_begin_it_again() {
        let november = at("2026-11-30T23:59:59.999Z").day().month();
        let december = november.next();
        let used = |month| Volume { month, requests: 7 };
        let fresh = |month| Volume { month, requests: 0 };
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
            assert_eq!(stored.at(at(now)), expected, "{stored:?} at {now}");
        }
    }

    #[test]
    fn only_a_request_of_the_counted_month_gives_its_place_back() {
        let month = Month::from_unix_months(682);
        let volume = |requests| Volume { month, requests };
        assert_eq!(volume(3).without_one_of(month), volume(2));
        assert_eq!(volume(0).without_one_of(month), volume(0));
        assert_eq!(volume(3).without_one_of(Month::from_unix_months(681)), volume(3));
        assert_eq!(volume(u32::MAX).with_one_more(), volume(u32::MAX));
    }
}
