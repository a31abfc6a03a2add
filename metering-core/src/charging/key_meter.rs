//! The part of the charge rule that concerns keys: their rate limits and budgets.
//!
//! A request counts for its key and for every parent key.

use std::sync::Arc;

use crate::access::budget::{Budget, Spent};
use crate::access::issued_key::Key;
use crate::access::key_id::{KeyId, KeyNumber};
use crate::access::key_terms::KeyTerms;
use crate::charging::rate::{LimitWindow, RateStatus, Window};
use crate::clock::{Day, Timestamp};
use crate::events::event_data::{BudgetEvent, EventData, KeyEvent};
use crate::money::alert::AlertLevel;
use crate::money::credits::Credits;

/// Requests and spending with a key and its child keys, in the current periods. Kept only for keys whose terms are
/// counted ([`KeyTerms::is_counted`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyMeter {
    /// Credits spent in the budget's period. Zero without a budget.
    pub spent: Spent,
    /// The highest alert raised in the budget's period.
    pub raised: AlertLevel,
    /// Accepted requests of the minute.
    pub minute: Window,
    /// Accepted requests of the day.
    pub day: Window,
}

/// Everything the charge rule reads from a key, and everything a charge changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    /// Its public id.
    pub id: KeyId,
    /// Its parent key.
    pub parent: Option<KeyNumber>,
    /// Whether it is neither disabled, leaked nor revoked.
    pub is_live: bool,
    /// Its terms.
    pub terms: Arc<KeyTerms>,
    /// The usage that counts against them.
    pub meter: KeyMeter,
}

/// Which limit of a key, or of a parent key, refused a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLimit {
    /// A rate limit.
    Rate(LimitWindow, RateStatus),
    /// The budget.
    Budget(ExhaustedBudget),
}

/// A budget that a charge would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExhaustedBudget {
    /// The budget.
    pub budget: Budget,
    /// The amount spent.
    pub spent: Credits,
    /// The request's price.
    pub required: Credits,
    /// The time of the decision.
    pub at: Timestamp,
}

impl ExhaustedBudget {
    /// Credits left, zero or more; less than the price.
    #[must_use]
    pub fn remaining(&self) -> Credits {
        remaining(&self.budget, self.spent)
    }

    /// When the budget starts again; `None` for never.
    #[must_use]
    pub fn resets_at(&self) -> Option<Timestamp> {
        self.budget.resets_at(self.at)
    }

    /// Seconds until it starts again, at least one; `None` for never.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        self.resets_at().map(|at| {
            let left = at.unix_millis().saturating_sub(self.at.unix_millis());
            u64::try_from(left).unwrap_or(0).div_ceil(1_000).max(1)
        })
    }
}

/// The remaining credits of a budget, zero or more.
#[must_use]
pub fn remaining(budget: &Budget, spent: Credits) -> Credits {
    budget.limit.checked_sub(spent).unwrap_or(Credits::ZERO).max(Credits::ZERO)
}

impl KeyState {
    /// The state of a key.
    #[must_use]
    pub fn of(key: &Key, meter: KeyMeter) -> Self {
        let (id, terms) = (key.id.clone(), Arc::new(key.terms.clone()));
        Self { id, parent: key.parent, is_live: key.is_live(), terms, meter }
    }

    /// The use of its rate limits at `now`, before any further request; `None` without rate limits.
    pub(crate) fn rate_status(&self, now: Timestamp) -> Option<RateStatus> {
        let limits = self.terms.limits;
        (limits != crate::RateLimits::NONE).then(|| RateStatus::of(limits, self.meter.minute, self.meter.day, now))
    }

    /// The meter after one more request at this price; unchanged if nothing of this key is counted.
    ///
    /// A budget is never exceeded: the remaining credits must cover the price.
    ///
    /// # Errors
    /// The limit that refuses the request: the day's, the minute's, the budget.
    pub(crate) fn admit(&self, price: Credits, now: Timestamp) -> Result<KeyMeter, KeyLimit> {
        let mut meter = self.meter;
        if let Some(rate) = self.rate_status(now) {
            let refused = |window| KeyLimit::Rate(window, rate);
            meter.day = rate.day.admit(rate.limits.requests_per_day).ok_or(refused(LimitWindow::Day))?;
            meter.minute = rate.minute.admit(rate.limits.requests_per_minute).ok_or(refused(LimitWindow::Minute))?;
        }
        if let Some(budget) = self.terms.budget {
            let spent = self.meter.spent.at(&budget, now);
            let exhausted = KeyLimit::Budget(ExhaustedBudget { budget, spent: spent.amount, required: price, at: now });
            let after = spent.amount.checked_add(price).filter(|after| *after <= budget.limit || !price.is_positive());
            meter.raised = self.raised_in(spent);
            meter.spent = Spent { amount: after.ok_or(exhausted)?, ..spent };
        }
        Ok(meter)
    }

    /// The meter after the budget refused a request: it has exhausted the period of `now`. `None` if that is before the
    /// newest period: the clock is wrong, and a request that changes nothing must not move the meter back.
    pub(crate) fn exhausted(&self, now: Timestamp) -> Option<KeyMeter> {
        let spent = self.meter.spent.at(&self.terms.budget?, now);
        let is_newest = spent.since >= self.meter.spent.since;
        is_newest.then(|| KeyMeter { spent, raised: self.raised_in(spent), ..self.meter })
    }

    /// The alert raised in the period of `spent`.
    fn raised_in(&self, spent: Spent) -> AlertLevel {
        if spent.since == self.meter.spent.since { self.meter.raised } else { AlertLevel::None }
    }

    /// Raises the budget's alert to the level of its remaining credits, or to exhausted after a refusal. Returns the
    /// events; none when the newest period that anything counted in is over.
    pub(crate) fn raise(&mut self, refused: bool, now: Timestamp) -> Vec<EventData> {
        let (Some(budget), threshold) = (self.terms.budget, self.terms.alert_below) else { return Vec::new() };
        if self.meter.spent.at(&budget, now).since != self.meter.spent.since {
            return Vec::new();
        }
        let remaining = remaining(&budget, self.meter.spent.amount);
        let refusal = if refused { AlertLevel::Short } else { AlertLevel::None };
        let level = AlertLevel::of(remaining, threshold).union(refusal);
        let raised = self.meter.raised.raise(level, threshold);
        let event = |level| {
            let key = KeyEvent { key_id: self.id.clone(), key_name: self.terms.name.clone() };
            EventData::of_budget(level, BudgetEvent::new(key, &budget, remaining, now), threshold)
        };
        raised.into_iter().filter_map(event).collect()
    }

    /// The meter after a hold of `day` was settled: the part that was not captured can be spent again. If more was
    /// captured than was held, the budget is exceeded.
    pub(crate) fn settled(&self, held: Credits, captured: Credits, day: Day) -> KeyMeter {
        match captured.checked_sub(held).filter(|excess| excess.is_positive()) {
            None => self.refunded(held.checked_sub(captured).unwrap_or(Credits::ZERO), day),
            Some(excess) => {
                let Spent { since, amount } = self.meter.spent;
                let counts = self.terms.budget.is_some() && day >= since;
                let after = if counts { amount.checked_add(excess).unwrap_or(amount) } else { amount };
                KeyMeter { spent: Spent { since, amount: after }, ..self.meter }
            }
        }
    }

    /// The meter after a refund of a charge of `day`. One of an earlier period no longer counts.
    pub(crate) fn refunded(&self, amount: Credits, day: Day) -> KeyMeter {
        let Spent { since, amount: spent } = self.meter.spent;
        let counts = self.terms.budget.is_some() && day >= since;
        let left = spent.checked_sub(amount).unwrap_or(spent).max(Credits::ZERO);
        let left = if counts { left } else { spent };
        KeyMeter { spent: Spent { since, amount: left }, ..self.meter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateLimits;
    use crate::access::budget::BudgetReset;

    fn state(limits: RateLimits, budget: Option<Budget>, meter: KeyMeter) -> KeyState {
        let terms = Arc::new(KeyTerms { limits, budget, ..KeyTerms::first() });
        let id = "key_0123456789abcdef0123".parse().unwrap();
        KeyState { id, parent: None, is_live: true, terms, meter }
    }

    const NOW: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    #[test]
    fn a_budget_is_spent_to_the_last_atom_and_never_exceeded() {
        let atoms = Credits::from_atoms;
        let budget = Budget { limit: atoms(10), reset: Some(BudgetReset::Daily) };
        let spent = |amount| Spent { since: NOW.day(), amount: atoms(amount) };
        // spent before, price, spent after (`None`: refused)
        let table =
            [(0, 10, Some(10)), (0, 11, None), (7, 3, Some(10)), (7, 4, None), (10, 1, None), (10, 0, Some(10))];
        for (before, price, after) in table {
            let state = state(RateLimits::NONE, Some(budget), KeyMeter { spent: spent(before), ..KeyMeter::default() });
            let admitted = state.admit(atoms(price), NOW).ok().map(|meter| meter.spent);
            assert_eq!(admitted, after.map(spent), "{before} + {price}");
        }
        let yesterday = Spent { since: NOW.day().minus_days(1), amount: atoms(10) };
        let state = state(RateLimits::NONE, Some(budget), KeyMeter { spent: yesterday, ..KeyMeter::default() });
        assert_eq!(state.admit(atoms(4), NOW).unwrap().spent, spent(4));
        assert_eq!(state.refunded(atoms(4), NOW.day().minus_days(1)).spent.amount, atoms(6));
        assert_eq!(state.refunded(atoms(4), NOW.day().minus_days(2)).spent.amount, atoms(10));
    }

    #[test]
    fn a_rate_limit_refuses_before_the_budget() {
        let budget = Some(Budget { limit: Credits::ZERO, reset: None });
        let limits = RateLimits::per_minute(1).and_per_day(1);
        let one = Credits::from_atoms(1);
        let full = |index| Window { index, count: 1 };
        let (minute, day) = (full(NOW.minute()), full(NOW.day().unix_days()));
        let meter = KeyMeter { minute, day, ..KeyMeter::default() };
        let refused = |limits, meter| match state(limits, budget, meter).admit(one, NOW) {
            Ok(_) => panic!("something refuses it"),
            Err(KeyLimit::Rate(window, _)) => window.as_str(),
            Err(KeyLimit::Budget(_)) => "budget",
        };
        assert_eq!(refused(limits, meter), "day");
        assert_eq!(refused(limits.and_per_day(0), meter), "minute");
        assert_eq!(refused(RateLimits::NONE, meter), "budget");
        assert_eq!(refused(limits, KeyMeter::default()), "budget");
    }

    #[test]
    fn a_settled_hold_gives_back_the_rest_and_takes_the_excess() {
        let atoms = Credits::from_atoms;
        let budget = Budget { limit: atoms(100), reset: Some(BudgetReset::Daily) };
        // spent, held, captured, days ago, spent after
        let table = [
            (80, 60, 0, 0, 20),
            (80, 60, 25, 0, 45),
            (80, 60, 60, 0, 80),
            (80, 60, 90, 0, 110),
            (80, 60, 0, 1, 80),
            (80, 60, 90, 1, 80),
            (50, 60, 0, 0, 0),
            (i64::MAX, 60, 90, 0, i64::MAX),
        ];
        for (before, held, captured, days_ago, after) in table {
            let spent = Spent { since: NOW.day(), amount: atoms(before) };
            let meter = KeyMeter { spent, ..KeyMeter::default() };
            let day = NOW.day().minus_days(days_ago);
            let settled = |budget| state(RateLimits::NONE, budget, meter).settled(atoms(held), atoms(captured), day);
            let expected = KeyMeter { spent: Spent { amount: atoms(after), ..spent }, ..meter };
            assert_eq!(settled(Some(budget)), expected, "{captured} of {held}, {days_ago} days ago");
            assert_eq!(settled(None), meter, "without a budget");
        }
    }

    #[test]
    fn a_refusal_exhausts_the_period_of_its_time() {
        use crate::money::alert::AlertLevel::{Low, None as Enough};
        let atoms = Credits::from_atoms;
        let budget = Budget { limit: atoms(10), reset: Some(BudgetReset::Daily) };
        let today = NOW.day();
        let spent = Spent { since: today, amount: atoms(7) };
        let state = state(RateLimits::NONE, Some(budget), KeyMeter { spent, raised: Low, ..KeyMeter::default() });
        let days = |days: i64| Timestamp::from_unix_millis(NOW.unix_millis() + days * 86_400_000);
        let exhausted =
            |now| state.exhausted(now).map(|meter| (meter.spent.since, meter.spent.amount.atoms(), meter.raised));
        assert_eq!(exhausted(NOW), Some((today, 7, Low)), "the caller raises the level");
        assert_eq!(exhausted(days(1)), Some((days(1).day(), 0, Enough)), "in a new period, nothing was reported");
        assert_eq!(exhausted(days(-1)), Some((today, 7, Low)), "a lagging clock counts in the newest period");
        assert_eq!(exhausted(days(-3)), None, "a wrong clock");
        let admitted = state.admit(atoms(3), NOW).unwrap();
        assert_eq!((admitted.spent.amount, admitted.raised), (atoms(10), Low));
        assert_eq!(state.admit(atoms(3), days(1)).unwrap().raised, Enough);
        let unlimited = KeyState { terms: Arc::new(KeyTerms::first()), ..state };
        assert_eq!(unlimited.exhausted(NOW), None);
    }

    #[test]
    fn a_budget_tells_only_what_is_true_and_each_level_once() {
        use crate::money::alert::AlertLevel::{Exhausted, Low, LowAndShort, None as Enough, Short};
        let atoms = Credits::from_atoms;
        let budget = Some(Budget { limit: atoms(100), reset: Some(BudgetReset::Daily) });
        // threshold, spent, raised before, refused, raised after, kinds reported
        type Row = (Option<i64>, i64, AlertLevel, bool, AlertLevel, &'static [&'static str]);
        let table: [Row; 10] = [
            (Some(50), 50, Enough, false, Enough, &[]),
            (Some(50), 51, Enough, false, Low, &["balance.low"]),
            (Some(50), 51, Low, false, Low, &[]),
            (Some(50), 100, Enough, false, Exhausted, &["balance.low", "budget.exhausted"]),
            (Some(50), 100, Low, false, Exhausted, &["budget.exhausted"]),
            (None, 99, Enough, false, Enough, &[]),
            (None, 120, Enough, false, Exhausted, &["budget.exhausted"]),
            (Some(50), 40, Enough, true, Short, &["budget.exhausted"]),
            (Some(50), 60, Enough, true, LowAndShort, &["balance.low", "budget.exhausted"]),
            (Some(50), 60, Short, false, LowAndShort, &["balance.low"]),
        ];
        for (threshold, spent, before, refused, after, kinds_reported) in table {
            let spent = Spent { since: NOW.day(), amount: atoms(spent) };
            let mut state = state(RateLimits::NONE, budget, KeyMeter { spent, raised: before, ..KeyMeter::default() });
            Arc::make_mut(&mut state.terms).alert_below = threshold.map(atoms);
            let late = NOW.saturating_add(std::time::Duration::from_secs(86_400));
            assert_eq!(state.raise(refused, late), [], "the period is over");
            let kinds: Vec<_> = state.raise(refused, NOW).iter().map(|data| data.kind().as_str()).collect();
            assert_eq!(
                (kinds.as_slice(), state.meter.raised),
                (kinds_reported, after),
                "{threshold:?} {spent:?} {refused}"
            );
            assert_eq!(state.raise(refused, NOW), [], "only once");
        }
    }

    #[test]
    fn what_is_not_counted_does_not_change() {
        let state = state(RateLimits::NONE, None, KeyMeter::default());
        assert_eq!(state.admit(Credits::from_atoms(5), NOW), Ok(KeyMeter::default()));
        assert_eq!(state.refunded(Credits::from_atoms(5), NOW.day()), KeyMeter::default());
    }
}
