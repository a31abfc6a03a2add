//! A key in the model: its secrets, and what counted for it.

use std::time::Duration;

use metering_core::access::{Budget, Key, KeyHash, KeyRefusal, KeyTerms, RateLimits, Scope};
use metering_core::charging::{ExhaustedBudget, LimitWindow, RateStatus, Window};
use metering_core::clock::{Day, Timestamp};
use metering_core::usage::UsageLine;
use metering_core::{Charge, Refusal};

use super::amount::credits;
use super::windows::window_counts;

const EPOCH: Day = Day::from_unix_days(0);

/// A key.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) key: Key,
    pub(crate) secrets: Vec<Secret>,
    pub(super) minute: Window,
    pub(super) day: Window,
    /// The first day of the newest period of its budget that anything counted in.
    pub(super) since: Day,
    /// The atoms that counted in it since it began, in order.
    pub(super) counted: Vec<i128>,
    /// The level of its budget that was reported in this period.
    pub(super) level: usize,
}

/// A secret that a key has or had.
#[derive(Debug)]
pub(crate) struct Secret {
    pub(crate) hash: KeyHash,
    pub(crate) revoked: bool,
    pub(crate) expires_at: Option<Timestamp>,
}

impl Issued {
    pub(crate) fn new(key: Key, secret: KeyHash) -> Self {
        let secrets = vec![Secret { hash: secret, revoked: false, expires_at: None }];
        Self {
            key,
            secrets,
            minute: Window::default(),
            day: Window::default(),
            since: EPOCH,
            counted: Vec::new(),
            level: 0,
        }
    }

    pub(crate) fn replace_secrets(&mut self, new: Option<KeyHash>) {
        self.secrets.iter_mut().for_each(|secret| secret.revoked = true);
        if let Some(hash) = new {
            self.key.hint = hash.hint();
            self.secrets.push(Secret { hash, revoked: false, expires_at: None });
        }
    }

    /// Revokes the secrets that were replaced, and work for a while longer.
    pub(crate) fn end_grace(&mut self) {
        self.secrets.iter_mut().filter(|secret| secret.expires_at.is_some()).for_each(|secret| secret.revoked = true);
    }

    pub(super) fn revoke(&mut self, now: Timestamp) {
        self.key.revoked_at.get_or_insert(now);
        self.replace_secrets(None);
    }

    /// Starts a period with this usage.
    pub(crate) fn begin(&mut self, since: Day, spent: i128) {
        (self.since, self.counted, self.level) = (since, vec![spent], 0);
    }

    pub(super) fn spent(&self) -> i128 {
        self.counted.iter().sum()
    }

    pub(super) fn since(&self) -> Day {
        self.since
    }

    /// The period that a request at `now` counts in, and its usage so far. A clock that lags by up to a day counts in
    /// the newest period.
    pub(super) fn spent_at(&self, budget: Budget, now: Timestamp) -> (Day, i128) {
        let (first, newest) = (first_day(budget, now), self.since);
        let lags = first < newest && now.saturating_add(Duration::from_secs(86_400)) >= newest.start();
        if first == newest || lags { (newest, self.spent()) } else { (first, 0) }
    }

    /// The use of its rate limits; `None` if it has none.
    pub(super) fn rate(&self, now: Timestamp) -> Option<RateStatus> {
        let limits = self.key.terms.limits;
        (limits != RateLimits::NONE).then(|| window_counts(limits, self.minute, self.day, now))
    }

    pub(super) fn check(&self, charge: &Charge, now: Timestamp) -> Result<(), Refusal> {
        let KeyTerms { expires_at, scopes, .. } = &self.key.terms;
        if let Some(at) = *expires_at
            && at <= now
        {
            return Err(Refusal::Key(KeyRefusal::Expired { at }));
        }
        if !scopes.has(Scope::Call) {
            return Err(Refusal::Key(KeyRefusal::Scope { scope: Scope::Call }));
        }
        let UsageLine { http_method, route_template, .. } = &charge.line;
        if self.key.terms.routes.allow(http_method, route_template) {
            Ok(())
        } else {
            Err(Refusal::Key(KeyRefusal::Route))
        }
    }

    pub(super) fn refuses(&self, charge: &Charge, account: RateStatus, now: Timestamp) -> Result<(), Refusal> {
        if let Some(rate) = self.rate(now) {
            let RateLimits { requests_per_minute, requests_per_day } = rate.limits;
            let windows = [
                (requests_per_day, rate.day, LimitWindow::Day),
                (requests_per_minute, rate.minute, LimitWindow::Minute),
            ];
            for (limit, counted, window) in windows {
                if limit > 0 && counted.count >= limit {
                    return Err(Refusal::RateLimited { window, rate });
                }
            }
        }
        let Some(budget) = self.key.terms.budget else { return Ok(()) };
        let (_, spent) = self.spent_at(budget, now);
        let price = i128::from(charge.price.atoms());
        if price > 0 && spent + price > i128::from(budget.limit.atoms()) {
            let exhausted = ExhaustedBudget { budget, spent: credits(spent), required: charge.price, at: now };
            return Err(Refusal::KeyBudget { exhausted, rate: account });
        }
        Ok(())
    }

    pub(super) fn count(&mut self, price: i128, now: Timestamp) {
        if let Some(rate) = self.rate(now) {
            let next = |window: Window| Window { index: window.index, count: window.count + 1 };
            (self.minute, self.day) = (next(rate.minute), next(rate.day));
        }
        if let Some(budget) = self.key.terms.budget {
            let (since, spent) = self.spent_at(budget, now);
            if self.since != since {
                self.begin(since, spent);
            }
            self.counted.push(price);
        }
    }
}

pub(crate) fn first_day(budget: Budget, now: Timestamp) -> Day {
    budget.reset.map_or(EPOCH, |reset| reset.first_day(now.day()))
}
