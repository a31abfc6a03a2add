//! Events in the model, with the level that each balance and budget has reached.

use metering_core::access::{Budget, KeyNumber};
use metering_core::clock::{Day, Timestamp};
use metering_core::events::Event;
use metering_core::events::EventKind::{self, BalanceExhausted, BalanceLow, BudgetExhausted};
use metering_core::money::{AlertLevel, BalanceAlert, Credits};

use super::Owner;

/// The bits of a level: low, and short of a request. Exhausted is both and one more.
const LOW: usize = 1;
const SHORT: usize = 2;
const EXHAUSTED: usize = 7;

/// The level of what remains.
fn level_of(remaining: i128, threshold: Option<Credits>) -> usize {
    match remaining {
        ..=0 => EXHAUSTED,
        _ if is_low(remaining, threshold) => LOW,
        _ => 0,
    }
}

fn is_low(remaining: i128, threshold: Option<Credits>) -> bool {
    threshold.is_some_and(|threshold| remaining < i128::from(threshold.atoms()))
}

fn remaining(budget: Budget, spent: i128) -> i128 {
    (i128::from(budget.limit.atoms()) - spent).max(0)
}

impl Owner {
    pub(crate) fn alert(&self) -> BalanceAlert {
        let raised = match self.level {
            EXHAUSTED => AlertLevel::Exhausted,
            bits => AlertLevel::ALL[bits],
        };
        BalanceAlert { threshold: self.threshold, raised }
    }

    pub(crate) fn tell(&mut self, kind: EventKind, now: Timestamp) {
        self.reported.push((kind, now));
    }

    pub(crate) fn set_threshold(&mut self, threshold: Option<Credits>) {
        self.threshold = threshold;
        self.lower_balance();
    }

    fn unspent(&self) -> i128 {
        self.balance() + self.held()
    }

    pub(crate) fn lower_balance(&mut self) {
        self.level &= level_of(self.unspent(), self.threshold);
    }

    /// Raises the level to that of what is not spent, or to exhausted if even that did not cover a request with this price.
    pub(super) fn raise_balance(&mut self, refused: Option<i128>, now: Timestamp) {
        let (balance, unspent) = (self.balance(), self.unspent());
        let is_short = refused.is_some_and(|price| unspent < price);
        let level = level_of(unspent, self.threshold) | if is_short { SHORT } else { 0 };
        let new = level & !self.level;
        if new & LOW > 0 && is_low(balance, self.threshold) {
            self.tell(BalanceLow, now);
        }
        if new > LOW {
            self.tell(BalanceExhausted, now);
        }
        self.level |= level;
    }

    /// After the newest entry was added to an existing account.
    pub(crate) fn tell_entry(&mut self, now: Timestamp) {
        let entry = self.entries.last().expect("an entry was just added");
        let (atoms, payment) = (entry.atoms, entry.payment_event());
        self.reported.extend(payment.map(|kind| (kind, now)));
        if atoms < 0 { self.raise_balance(None, now) } else { self.lower_balance() }
    }

    /// Raises the levels of a key and its parent keys, unless their budgets' newest periods are over.
    pub(crate) fn raise_keys(&mut self, key: KeyNumber, now: Timestamp) {
        for index in self.chain(key) {
            self.raise_key(index, false, now);
        }
    }

    /// A budget of this chain did not cover a request: the first that does not.
    pub(super) fn raise_refusing(&mut self, key: KeyNumber, price: i128, now: Timestamp) {
        let refuses = |index: &usize| {
            let issued = &self.issued[*index];
            let budget = issued.key.terms.budget;
            budget.is_some_and(|budget| {
                price > 0 && issued.spent_at(budget, now).1 + price > i128::from(budget.limit.atoms())
            })
        };
        let index = self.chain(key).into_iter().find(refuses).expect("a budget refused the request");
        let issued = &mut self.issued[index];
        let budget = issued.key.terms.budget.expect("it refused the request");
        let (since, spent) = issued.spent_at(budget, now);
        if since < issued.since() {
            return;
        }
        if since > issued.since() && issued.level_in(since) & SHORT == 0 {
            issued.begin(since, spent);
        }
        self.raise_key(index, true, now);
    }

    fn raise_key(&mut self, index: usize, refused: bool, now: Timestamp) {
        let issued = &mut self.issued[index];
        let (Some(budget), threshold) = (issued.key.terms.budget, issued.key.terms.alert_below) else { return };
        let (since, spent) = issued.spent_at(budget, now);
        if since != issued.since() {
            return;
        }
        let remaining = remaining(budget, spent);
        let level = level_of(remaining, threshold) | if refused { SHORT } else { 0 };
        let new = level & !issued.level;
        issued.level |= level;
        if new & LOW > 0 && is_low(remaining, threshold) {
            self.tell(BalanceLow, now);
        }
        if new > LOW {
            self.tell(BudgetExhausted, now);
        }
    }

    /// Lowers the level of a key whose terms changed and whose budget has the same period.
    pub(super) fn lower_key(&mut self, index: usize) {
        let issued = &mut self.issued[index];
        if let Some(budget) = issued.key.terms.budget {
            let level = level_of(remaining(budget, issued.spent()), issued.key.terms.alert_below);
            issued.level &= level;
        }
    }

    /// Deletes old events, and returns how many.
    pub(super) fn forget_events(&mut self, now: Timestamp) -> usize {
        let before = self.reported.len();
        self.reported.retain(|(_, at)| now < at.saturating_add(Event::RETENTION));
        before - self.reported.len()
    }
}

impl super::issued::Issued {
    /// The level raised in the period that begins on a day.
    fn level_in(&self, since: Day) -> usize {
        if since == self.since() { self.level } else { 0 }
    }
}
