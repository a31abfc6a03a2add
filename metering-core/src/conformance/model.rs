//! A plain model of what a store must answer, written apart from the rules that backends share.
//!
//! It knows no totals, windows or batches: it remembers every single event and adds them all up whenever it is asked,
//! in integers so wide that nothing overflows, one request after the other.

use std::collections::BTreeMap;

use crate::account::{Account, AccountId, RateLimits, Totals};
use crate::charge::{Charge, Decision, LimitWindow, RateStatus, Receipt, Refund, Refusal, RequestId, Window};
use crate::clock::{Day, Timestamp};
use crate::credits::Credits;
use crate::key::KeyHash;
use crate::ledger::{LedgerKind, NewLedgerEntry};
use crate::store::{Created, NewAccount, Posted};
use crate::usage::UsageLine;

/// Every account that was ever made, in that order.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) owners: Vec<Owner>,
    /// All ledger entries: the owner's number, and the entry.
    pub(super) ledger: Vec<(usize, Entry)>,
}

/// An account and all that ever happened to it.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) made: NewAccount,
    pub(super) limits: RateLimits,
    pub(super) key: KeyHash,
    pub(super) revoked_at: Option<Timestamp>,
    pub(super) entries: Vec<Entry>,
    pub(super) usage: Vec<Event>,
    /// How many requests were accepted in which minute, and on which day.
    minutes: BTreeMap<i64, u32>,
    days: BTreeMap<i64, u32>,
    /// When an answer was given, what was charged, and what was left.
    answers: BTreeMap<RequestId, (Timestamp, Credits, Credits)>,
}

/// A ledger entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: LedgerKind,
    pub(super) atoms: i128,
    pub(super) description: String,
    pub(super) at: Timestamp,
}

/// One request, or one refund.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) is_refund: bool,
    pub(super) line: UsageLine,
    /// Atoms used: below zero for a refund.
    pub(super) used: i128,
    pub(super) booked_on: Day,
    pub(super) at: Timestamp,
}

fn fits(atoms: i128) -> bool {
    i64::try_from(atoms).is_ok()
}

/// The amount of atoms that are known to fit.
pub(super) fn credits(atoms: i128) -> Credits {
    Credits::from_atoms(i64::try_from(atoms).expect("the model lets nothing in that does not fit"))
}

impl Owner {
    pub(super) fn is_live(&self) -> bool {
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

    fn balance(&self) -> i128 {
        self.purchased() + self.granted() - self.used()
    }

    fn all_fit(&self) -> bool {
        [self.purchased(), self.granted(), self.used(), self.balance()].into_iter().all(fits)
    }

    pub(super) fn account(&self) -> Account {
        let made = self.made.clone();
        Account {
            id: made.id,
            agent_name: made.agent_name,
            email: made.email,
            payer: made.payer,
            limits: self.limits,
            totals: Totals {
                balance: credits(self.balance()),
                purchased: credits(self.purchased()),
                granted: credits(self.granted()),
                used: credits(self.used()),
            },
            created_at: made.created_at,
            revoked_at: self.revoked_at,
        }
    }

    /// Adds entries if they fit, one after the other; says whether they did.
    fn add(&mut self, entries: &[NewLedgerEntry], at: Timestamp) -> bool {
        let count = self.entries.len();
        for entry in entries {
            let NewLedgerEntry { kind, amount, description, payment: _ } = entry.clone();
            self.entries.push(Entry { kind, atoms: i128::from(amount.atoms()), description, at });
            if !self.all_fit() {
                self.entries.truncate(count);
                return false;
            }
        }
        true
    }

    /// The windows that a request at `now` falls into, with their counts: never older than the newest with any.
    fn rate(&self, now: Timestamp) -> RateStatus {
        let window = |counts: &BTreeMap<i64, u32>, index: i64| {
            let newest = counts.keys().next_back().copied().unwrap_or(0);
            let index = index.max(newest);
            Window { index, count: counts.get(&index).copied().unwrap_or(0) }
        };
        let (minute, day) = (window(&self.minutes, now.minute()), window(&self.days, now.day().unix_days()));
        RateStatus { limits: self.limits, minute, day, at: now }
    }

    fn charge(&mut self, charge: Charge, now: Timestamp) -> Decision {
        let rate = self.rate(now);
        let receipt = |rate, charged, balance, repeated| Receipt {
            account: self.made.id.clone(),
            charged,
            balance,
            line: charge.line.clone(),
            day: now.day(),
            request_path: charge.request_path.clone(),
            rate,
            repeated,
        };
        let answered = charge.request_id.as_ref().and_then(|id| self.answers.get(id));
        if let Some((first, charged, balance)) = answered
            && now < first.saturating_add(RequestId::REMEMBERED)
        {
            return Decision::Accepted(receipt(rate, *charged, *balance, true));
        }
        let RateLimits { requests_per_minute, requests_per_day } = self.limits;
        for (cap, window, name) in
            [(requests_per_day, rate.day, LimitWindow::Day), (requests_per_minute, rate.minute, LimitWindow::Minute)]
        {
            if cap > 0 && window.count >= cap {
                return Decision::Refused(Refusal::RateLimited { window: name, rate });
            }
        }
        let (before, used, price) = (self.balance(), self.used(), i128::from(charge.price.atoms()));
        if before <= 0 || !fits(before - price) || !fits(used + price) {
            let (balance, required) = (credits(before), charge.price);
            return Decision::Refused(Refusal::InsufficientCredits { balance, required, rate });
        }
        let count = |window: Window| Window { index: window.index, count: window.count + 1 };
        let rate = RateStatus { minute: count(rate.minute), day: count(rate.day), ..rate };
        let accepted = receipt(rate, charge.price, credits(before - price), false);
        self.minutes.insert(rate.minute.index, rate.minute.count);
        self.days.insert(rate.day.index, rate.day.count);
        if let Some(id) = charge.request_id {
            self.answers.insert(id, (now, charge.price, accepted.balance));
        }
        let event = Event { is_refund: false, line: charge.line, used: price, booked_on: now.day(), at: now };
        self.usage.push(event);
        Decision::Accepted(accepted)
    }
}

impl Model {
    pub(super) fn create(&mut self, new: &NewAccount) -> Created {
        let folded = |made: &NewAccount| made.email.as_ref().map(|email| email.as_str().to_lowercase());
        let taken = |owner: &Owner| owner.is_live() && folded(&owner.made) == folded(new);
        if new.email.is_some() && self.owners.iter().any(taken) {
            return Created::EmailTaken;
        }
        let mut owner = Owner {
            made: new.clone(),
            limits: new.limits,
            key: new.key,
            revoked_at: None,
            entries: Vec::new(),
            usage: Vec::new(),
            minutes: BTreeMap::new(),
            days: BTreeMap::new(),
            answers: BTreeMap::new(),
        };
        if !owner.add(&new.entries, new.created_at) {
            return Created::OutOfRange;
        }
        let number = self.owners.len();
        self.ledger.extend(owner.entries.iter().map(|entry| (number, entry.clone())));
        let account = owner.account();
        self.owners.push(owner);
        Created::Account(account)
    }

    pub(super) fn post(&mut self, number: usize, entry: &NewLedgerEntry, now: Timestamp) -> Posted {
        let owner = &mut self.owners[number];
        if !owner.is_live() {
            return Posted::NoSuchAccount;
        }
        if !owner.add(std::slice::from_ref(entry), now) {
            return Posted::OutOfRange;
        }
        self.ledger.extend(owner.entries.last().map(|entry| (number, entry.clone())));
        Posted::Account(owner.account())
    }

    pub(super) fn owner_of(&self, key: KeyHash) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.is_live() && owner.key == key)
    }

    pub(super) fn charge(&mut self, charge: Charge, now: Timestamp) -> Decision {
        match self.owners.iter_mut().find(|owner| owner.is_live() && owner.key == charge.key) {
            Some(owner) => owner.charge(charge, now),
            None => Decision::Refused(Refusal::UnknownKey),
        }
    }

    pub(super) fn refund(&mut self, refund: &Refund, now: Timestamp) -> Option<Credits> {
        let owner = self.owners.iter_mut().find(|owner| owner.made.id == refund.account)?;
        owner.usage.push(Event {
            is_refund: true,
            line: refund.line.clone(),
            used: -i128::from(refund.amount.atoms()),
            booked_on: refund.day,
            at: now,
        });
        if owner.all_fit() {
            return Some(credits(owner.balance()));
        }
        owner.usage.pop();
        None
    }

    /// Forgets the answers whose time is over, and says how many.
    pub(super) fn forget(&mut self, now: Timestamp) -> u64 {
        let mut forgotten = 0;
        for owner in &mut self.owners {
            let before = owner.answers.len();
            owner.answers.retain(|_, (first, ..)| now < first.saturating_add(RequestId::REMEMBERED));
            forgotten += before - owner.answers.len();
        }
        u64::try_from(forgotten).unwrap()
    }

    pub(super) fn id(&self, number: usize) -> AccountId {
        self.owners[number].made.id.clone()
    }
}
