//! Keys in the model, with every secret that they ever had and everything that counted for them.

use metering_core::access::{Key, KeyHash, KeyId, KeyNumber, KeyStatus, KeyTerms, KeyUsage, RateLimits, Scope, Spent};
use metering_core::charging::{RateStatus, Window};
use metering_core::clock::{Day, Timestamp};
use metering_core::events::EventKind;
use metering_core::store::Discrepancy;
use metering_core::usage::ActivityKind;
use metering_core::{Charge, Refusal};

use super::Owner;
use super::amount::credits;
use super::issued::{Issued, first_day};

impl Owner {
    pub(crate) fn chain(&self, number: KeyNumber) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut next = Some(number);
        while let Some(number) = next {
            let index = usize::try_from(number.get()).unwrap();
            chain.push(index);
            next = self.issued[index].key.parent;
        }
        chain
    }

    /// The key with a secret that is not revoked.
    pub(crate) fn holder(&self, secret: KeyHash) -> Option<(&Issued, Option<Timestamp>)> {
        let found = self.issued.iter().flat_map(|issued| issued.secrets.iter().map(move |secret| (issued, secret)));
        let mut found = found.filter(|(_, of)| of.hash == secret && !of.revoked);
        found.next().filter(|_| self.is_live()).map(|(issued, secret)| (issued, secret.expires_at))
    }

    pub(crate) fn is_live_key(&self, secret: KeyHash, now: Timestamp) -> bool {
        let Some((issued, expires_at)) = self.holder(secret) else { return false };
        let mut chain = self.chain(issued.key.number).into_iter().map(|index| &self.issued[index].key);
        expires_at.is_none_or(|at| now < at)
            && chain.all(|key| key.is_live() && key.terms.expires_at.is_none_or(|at| now < at))
    }

    pub(crate) fn find(&self, id: &KeyId) -> Option<usize> {
        self.issued.iter().position(|issued| issued.key.id == *id)
    }

    pub(crate) fn check_keys(&self, key: KeyNumber, charge: &Charge, now: Timestamp) -> Result<(), Refusal> {
        let chain = self.chain(key);
        let is_dead = |key: &Key| key.terms.disabled || key.leaked_at.is_some() || key.revoked_at.is_some();
        if chain.iter().any(|index| is_dead(&self.issued[*index].key)) {
            return Err(Refusal::UnknownKey);
        }
        chain.into_iter().try_for_each(|index| self.issued[index].check(charge, now))
    }

    pub(crate) fn key_limits(
        &self,
        key: KeyNumber,
        charge: &Charge,
        account: RateStatus,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        self.chain(key).into_iter().try_for_each(|index| self.issued[index].refuses(charge, account, now))
    }

    pub(crate) fn count_for_keys(&mut self, key: KeyNumber, price: i128, now: Timestamp) {
        for index in self.chain(key) {
            self.issued[index].count(price, now);
        }
    }

    /// The use of the key's own rate limits.
    pub(crate) fn key_rate(&self, key: KeyNumber, now: Timestamp) -> Option<RateStatus> {
        self.issued[usize::try_from(key.get()).unwrap()].rate(now)
    }

    pub(crate) fn refund_keys(&mut self, key: KeyNumber, atoms: i128, day: Day) {
        for index in self.chain(key) {
            let issued = &mut self.issued[index];
            if issued.key.terms.budget.is_some() && day >= issued.since {
                let spent = issued.spent();
                issued.counted.push(-atoms.min(spent));
            }
        }
    }

    /// Counts the amount captured beyond a hold.
    pub(super) fn exceed_keys(&mut self, key: KeyNumber, atoms: i128, day: Day) {
        for index in self.chain(key) {
            let issued = &mut self.issued[index];
            let fits = i64::try_from(issued.spent() + atoms).is_ok();
            if issued.key.terms.budget.is_some() && day >= issued.since && fits {
                issued.counted.push(atoms);
            }
        }
    }

    /// The sum of the events and open holds of a key and its child keys since a day.
    fn spent_since(&self, number: KeyNumber, day: Day) -> i128 {
        let index = usize::try_from(number.get()).unwrap();
        let counts = |of: Day, key: KeyNumber| of >= day && self.chain(key).contains(&index);
        let used = self.usage.iter().filter(|event| counts(event.booked_on, event.key)).map(|event| event.used);
        let open = self.open_holds().filter(|hold| counts(hold.created_at.day(), hold.key));
        used.sum::<i128>() + open.map(|hold| i128::from(hold.amount.atoms())).sum::<i128>()
    }

    /// The budgets from which less was taken than the events add up to: after a clock was set back.
    pub(crate) fn short_budgets(&self) -> Vec<Discrepancy> {
        let short = |issued: &Issued| {
            let (spent, computed) = (issued.spent(), self.spent_since(issued.key.number, issued.since));
            (issued.key.terms.budget.is_some() && spent < computed).then(|| Discrepancy {
                account: self.made.id.clone(),
                amount: "key_spent",
                recorded: credits(spent),
                computed: credits(computed),
            })
        };
        self.issued.iter().filter_map(short).collect()
    }

    /// The details of a key that a store must return.
    pub(crate) fn status(&self, issued: &Issued, today: Day) -> KeyStatus {
        let own = || self.usage.iter().filter(|event| event.key == issued.key.number);
        let since = |first: Day| {
            let days = own().filter(|event| (first..=today).contains(&event.booked_on));
            credits(days.map(|event| event.used).sum())
        };
        let [daily, weekly, monthly] =
            metering_core::access::BudgetReset::ALL.map(|reset| since(reset.first_day(today)));
        let usage = KeyUsage {
            total: credits(own().map(|event| event.used).sum()),
            daily,
            weekly,
            monthly,
            last_used: own().filter(|event| event.kind != ActivityKind::UsageRefund).map(|event| event.booked_on).max(),
        };
        let spent = Spent { since: issued.since, amount: credits(issued.spent()) };
        let spent = issued.key.terms.budget.map(|_| spent);
        let chain = self.chain(issued.key.number);
        let parents_are_live = chain[1..].iter().all(|index| self.issued[*index].key.is_live());
        KeyStatus { key: issued.key.clone(), parents_are_live, spent, usage }
    }

    /// Whether a key and all its parents are live and may manage keys.
    pub(crate) fn manages(&self, index: usize, now: Timestamp) -> bool {
        self.chain(self.issued[index].key.number).into_iter().all(|index| {
            let key = &self.issued[index].key;
            let expired = key.terms.expires_at.is_some_and(|at| at <= now);
            key.is_live() && !expired && key.terms.scopes.has(Scope::Manage)
        })
    }

    /// Starts the budget with the usage so far, if it is new or has another period.
    pub(crate) fn restart_budget(&mut self, index: usize, before: &KeyTerms, now: Timestamp) {
        let after = self.issued[index].key.terms.clone();
        let is_counted = |terms: &KeyTerms| terms.budget.is_some() || terms.limits != RateLimits::NONE;
        if !is_counted(&after) {
            let issued = &mut self.issued[index];
            (issued.minute, issued.day, issued.level) = (Window::default(), Window::default(), 0);
        }
        let period = |terms: &KeyTerms| terms.budget.map(|budget| budget.reset);
        if period(before) == period(&after) {
            self.lower_key(index);
            return;
        }
        if let Some(budget) = after.budget {
            let since = first_day(budget, now);
            let spent = self.spent_since(self.issued[index].key.number, since);
            self.issued[index].begin(since, spent);
        } else {
            self.issued[index].level = 0;
        }
    }

    fn revoke(&mut self, index: usize, now: Timestamp) {
        if self.issued[index].key.revoked_at.is_none() {
            self.tell(EventKind::KeyRevoked, now);
        }
        self.issued[index].revoke(now);
    }

    /// Revokes the child keys of one.
    pub(crate) fn revoke_below(&mut self, index: usize, now: Timestamp) {
        for below in 0..self.issued.len() {
            if below != index && self.chain(self.issued[below].key.number).contains(&index) {
                self.revoke(below, now);
            }
        }
    }

    /// Replaces the first key's secret, revokes all other keys that can manage keys, with their child keys, and ends
    /// the grace periods of the rest.
    pub(crate) fn recover(&mut self, secret: KeyHash, now: Timestamp) {
        for index in 1..self.issued.len() {
            let manages = self.issued[index].key.terms.scopes.has(Scope::Manage);
            if manages && self.issued[index].key.revoked_at.is_none() {
                self.revoke(index, now);
                self.revoke_below(index, now);
            }
            self.issued[index].end_grace();
        }
        let first = &mut self.issued[0];
        first.replace_secrets(Some(secret));
        let KeyTerms { scopes, routes, networks, expires_at, disabled, .. } = KeyTerms::first();
        first.key.terms = KeyTerms { scopes, routes, networks, expires_at, disabled, ..first.key.terms.clone() };
        first.key.leaked_at = None;
    }
}
