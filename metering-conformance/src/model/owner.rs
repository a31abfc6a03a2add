//! An account in the model, with every ledger entry and request it ever had.

mod alerts;
mod amount;
mod counted;
mod holds;
pub(super) mod issued;
mod keys;
mod volumes;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use metering_core::access::{Account, Key, KeyHash, KeyNumber, RateLimits, Totals};
use metering_core::charging::{CountedRoute, Held, Hold, HoldId, LimitWindow, RateStatus, Repetition, Window};
use metering_core::clock::{Day, Timestamp};
use metering_core::events::EventKind;
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry, PaymentRef};
use metering_core::store::NewAccount;
use metering_core::usage::{ActivityKind, UsageLine};
use metering_core::{Charge, Refusal, RequestId};

use super::outcome::Charged;
pub(crate) use amount::credits;
use amount::fits;
use counted::Counted;
use issued::Issued;
use windows::window_counts;

/// An account and its complete history.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) made: NewAccount,
    pub(crate) limits: RateLimits,
    /// Every secret that its owner was given for an existing account; the last one is the current one.
    pub(crate) keys: Vec<KeyHash>,
    /// Its keys, by number.
    pub(crate) issued: Vec<Issued>,
    pub(crate) revoked_at: Option<Timestamp>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) usage: Vec<Event>,
    /// Every hold that a store must still find, in the order opened.
    pub(crate) holds: Vec<Hold>,
    /// Kind and time of every event that a store must still have, in order.
    pub(crate) reported: Vec<(EventKind, Timestamp)>,
    /// The balance below which it is low.
    threshold: Option<Credits>,
    /// The level of its balance that was reported.
    level: usize,
    /// The day of its last turn to be refilled.
    pub(super) last_turn: Option<Day>,
    /// Requests accepted in the newest minute and on the newest day.
    minute: Window,
    day: Window,
    /// Requests to routes with volume tiers.
    pub(crate) volumes: BTreeMap<CountedRoute, Counted>,
    /// The result of each request id.
    results: BTreeMap<(KeyNumber, RequestId), First>,
}

/// The result of the first request with an id.
#[derive(Debug, Clone, Copy)]
struct First {
    at: Timestamp,
    charged: Credits,
    /// The balance after it.
    balance: Credits,
    hold: Option<HoldId>,
}

/// A ledger entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: LedgerKind,
    pub(crate) atoms: i128,
    pub(crate) description: String,
    pub(crate) payment: Option<PaymentRef>,
    pub(crate) at: Timestamp,
}

impl Entry {
    /// The event of an entry that names a payment.
    fn payment_event(&self) -> Option<EventKind> {
        self.payment.as_ref()?;
        match self.kind {
            LedgerKind::PaymentReversed => Some(EventKind::PaymentReversed),
            _ => (self.atoms > 0).then_some(EventKind::PaymentCredited),
        }
    }
}

/// One request, one refund, or one settled hold.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: ActivityKind,
    pub(crate) line: UsageLine,
    pub(crate) key: KeyNumber,
    /// Atoms used; negative for a refund.
    pub(crate) used: i128,
    pub(crate) booked_on: Day,
    pub(crate) at: Timestamp,
}

impl Owner {
    /// Makes an owner with its first entries; `None` when they are out of range.
    pub(super) fn new(made: NewAccount) -> Option<Self> {
        let mut owner = Self {
            limits: made.limits,
            keys: vec![made.key],
            issued: vec![Issued::new(Key::first(made.id.clone(), &made.key, made.created_at), made.key)],
            revoked_at: None,
            entries: Vec::new(),
            usage: Vec::new(),
            holds: Vec::new(),
            reported: vec![(EventKind::KeyCreated, made.created_at)],
            threshold: None,
            level: 0,
            last_turn: None,
            minute: Window::default(),
            day: Window::default(),
            volumes: BTreeMap::new(),
            results: BTreeMap::new(),
            made,
        };
        let (entries, at) = (owner.made.entries.clone(), owner.made.created_at);
        if !owner.add(&entries, at) {
            return None;
        }
        let payments: Vec<_> = owner.entries.iter().filter_map(Entry::payment_event).collect();
        owner.reported.extend(payments.into_iter().map(|kind| (kind, at)));
        Some(owner)
    }

    pub(crate) fn key(&self) -> KeyHash {
        *self.keys.last().expect("every account has a key")
    }

    pub(crate) fn is_live(&self) -> bool {
        self.revoked_at.is_none()
    }

    fn purchased(&self) -> i128 {
        self.entries.iter().filter(|entry| entry.kind.is_purchase()).map(|entry| entry.atoms).sum()
    }

    fn granted(&self) -> i128 {
        self.entries.iter().filter(|entry| !entry.kind.is_purchase()).map(|entry| entry.atoms).sum()
    }

    fn used(&self) -> i128 {
        self.usage.iter().map(|event| event.used).sum()
    }

    pub(super) fn balance(&self) -> i128 {
        self.purchased() + self.granted() - self.used() - self.held()
    }

    pub(super) fn all_fit(&self) -> bool {
        let (balance, used, held) = (self.balance(), self.used(), self.held());
        [self.purchased(), self.granted(), used, balance, used + held, balance + held].into_iter().all(fits)
    }

    pub(crate) fn account(&self) -> Account {
        let made = self.made.clone();
        let mut account = Account::new(made.id, made.agent_name, made.created_at);
        account.email = made.email;
        account.email_status = made.email_status;
        account.payer = made.payer;
        account.limits = self.limits;
        account.totals = Totals {
            balance: credits(self.balance()),
            purchased: credits(self.purchased()),
            granted: credits(self.granted()),
            used: credits(self.used()),
            held: credits(self.held()),
        };
        account.alert = self.alert();
        account.revoked_at = self.revoked_at;
        account
    }

    /// Adds entries one by one if they fit, and returns whether they did.
    pub(super) fn add(&mut self, entries: &[NewLedgerEntry], at: Timestamp) -> bool {
        let count = self.entries.len();
        for entry in entries {
            let NewLedgerEntry { kind, amount, description, payment } = entry.clone();
            self.entries.push(Entry { kind, atoms: i128::from(amount.atoms()), description, payment, at });
            if !self.all_fit() {
                self.entries.truncate(count);
                return false;
            }
        }
        true
    }

    pub(super) fn charge(&mut self, key: KeyNumber, charge: Charge, now: Timestamp) -> Result<Charged, Refusal> {
        self.check_keys(key, &charge, now)?;
        let rate = window_counts(self.limits, self.minute, self.day, now);
        let first = charge.request_id.clone().and_then(|id| self.results.get(&(key, id)).copied());
        let first = first.filter(|first| now < first.at.saturating_add(RequestId::RETENTION));
        let counted = charge.counted_route();
        let volume = counted.as_ref().map(|route| self.volume(route, now));
        // A repeated request has the price that it had.
        let price = first.filter(|_| counted.is_some()).map_or_else(|| self.price(&charge, now), |first| first.charged);
        let mut charge = charge.with_price(price);
        let (line, request_path) = (charge.line.clone(), Arc::clone(&charge.request_path));
        let (id, own_key) = (self.made.id.clone(), key);
        let receipt = |rate, charged: Credits, balance, first: Option<Timestamp>, hold: Option<Held>| Charged {
            account: id.clone(),
            key: own_key,
            charged: if hold.is_some() { Credits::ZERO } else { charged },
            balance,
            line: line.clone(),
            day: first.unwrap_or(now).day(),
            request_path: request_path.clone(),
            rate,
            repeated: first.is_some(),
            delivery: None,
            has_slot: false,
            hold,
            price_version: None,
            volume: volume.clone(),
        };
        if let Some(first) = first {
            let hold = match first.hold.zip(charge.hold) {
                Some((id, terms)) => self.held_again(id, terms, charge.price, now).map(|held| held.map(Some)),
                None if first.hold.is_none() && charge.hold.is_none() => Ok(Some(None)),
                None => Err(()),
            };
            match hold {
                Err(()) => return Err(Refusal::Repeated(Repetition::OtherRequest)),
                Ok(Some(hold)) => {
                    let rate = self.key_rate(key, now).unwrap_or(rate);
                    return Ok(receipt(rate, first.charged, first.balance, Some(first.at), hold));
                }
                Ok(None) if counted.is_some() => charge.price = self.price(&charge, now),
                Ok(None) => {}
            }
        }
        let RateLimits { requests_per_minute, requests_per_day } = self.limits;
        for (cap, window, name) in
            [(requests_per_day, rate.day, LimitWindow::Day), (requests_per_minute, rate.minute, LimitWindow::Minute)]
        {
            if cap > 0 && window.count >= cap {
                return Err(Refusal::RateLimited { window: name, rate });
            }
        }
        let (before, used, price) = (self.balance(), self.used(), i128::from(charge.price.atoms()));
        let is_allowance = counted.is_some() && price == 0;
        let is_covered = is_allowance || (before > 0 && (charge.hold.is_none() || before >= price));
        if !is_covered || !fits(before - price) || !fits(used + self.held() + price) {
            self.raise_balance(Some(price), now);
            let (balance, required) = (credits(before), charge.price);
            return Err(Refusal::InsufficientCredits { balance, required, rate });
        }
        let count = |window: Window| Window { index: window.index, count: window.count + 1 };
        let rate = RateStatus { minute: count(rate.minute), day: count(rate.day), ..rate };
        if let Err(refusal) = self.key_limits(key, &charge, rate, now) {
            if matches!(refusal, Refusal::KeyBudget { .. }) {
                self.raise_refusing(key, price, now);
            }
            return Err(refusal);
        }
        let hold = charge.hold.map(|terms| Held { id: terms.id, amount: charge.price, lease: terms.lease });
        let mut accepted = receipt(rate, charge.price, credits(before - price), None, hold);
        (self.minute, self.day) = (rate.minute, rate.day);
        let by_volume = counted.zip(charge.by_volume.as_ref());
        accepted.volume = by_volume.map(|(route, terms)| self.count(route, &terms.tiers, now));
        self.count_for_keys(key, price, now);
        if charge.hold.is_none() || is_allowance {
            self.raise_keys(key, now);
        }
        accepted.rate = self.key_rate(key, now).unwrap_or(rate);
        if let Some(id) = charge.request_id.clone() {
            let (charged, balance, hold) = (charge.price, accepted.balance, charge.hold.map(|terms| terms.id));
            self.results.insert((key, id), First { at: now, charged, balance, hold });
        }
        match charge.hold {
            Some(terms) => self.open(terms, key, &charge, now),
            None => {
                let (kind, line) = (ActivityKind::Usage, charge.line);
                self.usage.push(Event { kind, line, key, used: price, booked_on: now.day(), at: now });
            }
        }
        self.raise_balance(None, now);
        Ok(accepted)
    }

    /// Deletes expired results of request ids, and holds that are no longer kept, and returns how many.
    pub(super) fn forget(&mut self, now: Timestamp) -> usize {
        let before = self.results.len();
        self.results.retain(|_, first| now < first.at.saturating_add(RequestId::RETENTION));
        before - self.results.len() + self.forget_holds(now) + self.forget_events(now)
    }
}
