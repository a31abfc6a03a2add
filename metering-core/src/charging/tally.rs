//! The pure half of a commit: applies a batch of postings to loaded accounts and collects the rows to write.
//!
//! [`decide`](super::batch::decide) loads the rows that a posting depends on and applies the posting. A row is written
//! once however many postings of the batch change it. Accounts and usage lines have the backend's own numbers, `K` and
//! `L`.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

// Keys are the backend's row numbers, which clients cannot choose, so a fast hash is safe. Hashing them takes a large
// share of the time of a large batch.
use foldhash::{HashMap, HashMapExt};

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::charging::charge::{Charge, Decision, MeterState, Receipt, Refund, Settlement};
use crate::charging::delivery::{Attempt, Delivery};
use crate::charging::hold::{Held, HoldId};
use crate::charging::posting::{Remembered, StoredResult};
use crate::charging::rate::RateStatus;
use crate::charging::refusal::Refusal;
use crate::charging::request_id::RequestId;
use crate::charging::rule::{self, Debit};
use crate::charging::tokens::{HeldTokens, TokenScope};
use crate::charging::volume::CountedRoute;
use crate::clock::{Day, Timestamp};
use crate::events::event::NewEvent;
use crate::money::alert::AlertLevel;
use crate::money::credits::Credits;

pub use changes::{Changes, HoldChange, UsageChange, UsageKind};

use repeat::Repeat;
use touched::{TouchedHold, TouchedKey, TouchedTokens, TouchedVolume};

mod alerts;
mod changes;
mod holds;
mod keys;
mod repeat;
mod results;
mod tokens;
mod touched;
mod volumes;

/// A batch being applied.
#[derive(Debug)]
pub(crate) struct Tally<K, L> {
    now: Timestamp,
    accounts: HashMap<K, Touched>,
    keys: HashMap<(K, KeyNumber), TouchedKey>,
    holds: BTreeMap<HoldId, TouchedHold<K, L>>,
    usage: HashMap<Row<K, L>, UsageDelta>,
    results: BTreeMap<(K, RequestId), Remembered>,
    volumes: BTreeMap<(K, CountedRoute), TouchedVolume>,
    /// Limits on tokens of accounts, and windows of those who have one. Empty in most batches.
    token_limits: BTreeMap<K, u32>,
    tokens: BTreeMap<(K, TokenScope), TouchedTokens>,
    events: Vec<(K, NewEvent)>,
}

/// The key by which usage of a batch is summed.
type Row<K, L> = (K, Day, L, KeyNumber, UsageKind);

#[derive(Debug)]
struct Touched {
    id: AccountId,
    state: MeterState,
    /// The stored alert level.
    raised: AlertLevel,
    changed: bool,
}

#[derive(Debug)]
struct UsageDelta {
    calls: u64,
    amount: Credits,
    request_path: Option<Arc<str>>,
}

impl<K: Copy + Ord + Hash, L: Clone + Ord + Hash> Tally<K, L> {
    /// A batch of about this many postings, decided at `now`.
    #[must_use]
    pub(crate) fn new(now: Timestamp, postings: usize) -> Self {
        // In a large batch, accounts are rarely all different.
        let postings = postings.min(1_024);
        Self {
            now,
            accounts: HashMap::with_capacity(postings),
            keys: HashMap::with_capacity(postings),
            holds: BTreeMap::new(),
            usage: HashMap::with_capacity(postings),
            results: BTreeMap::new(),
            volumes: BTreeMap::new(),
            token_limits: BTreeMap::new(),
            tokens: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// Whether the account is loaded.
    #[must_use]
    pub(crate) fn is_loaded(&self, account: K) -> bool {
        self.accounts.contains_key(&account)
    }

    /// Adds the stored state of an account, once per batch.
    pub(crate) fn load(&mut self, account: K, id: AccountId, state: MeterState) {
        let raised = state.alert.raised;
        self.accounts.entry(account).or_insert(Touched { id, state, raised, changed: false });
    }

    /// Decides one charge or hold of a loaded account with a key whose secret is known. `remembered` is the stored
    /// result for its request id with this key ([`RequestId::of_key_number`]). If that opened a hold
    /// ([`Tally::missing_hold`]), load it first.
    ///
    /// Refused, in this order: uses that the key does not allow ([`KeyUse::check`](crate::access::KeyUse::check)),
    /// requests in flight, the most that the request may cost, an idempotency key that is in use, the account's rate
    /// limits and balance, limits on tokens, the key's rate limits and budget. A rule for a key applies to its parent
    /// keys too.
    ///
    /// # Panics
    /// When the account, the key, a parent key, the count of the charge's route, or a window of tokens was not loaded.
    pub(crate) fn charge(
        &mut self,
        account: K,
        key: KeyNumber,
        line: L,
        charge: Charge,
        remembered: Option<Remembered>,
    ) -> Decision {
        let charge = Charge { request_id: charge.request_id.map(|id| id.of_key_number(key)), ..charge };
        let earlier = charge.request_id.as_ref().and_then(|request| self.known(account, request, remembered));
        match self.accept(account, key, line, charge, earlier) {
            Ok(receipt) => Decision::Accepted(receipt),
            Err(refusal) => Decision::Refused(refusal),
        }
    }

    /// Accepts a charge or hold, or refuses it. `earlier` is the result of the request with the same id.
    fn accept(
        &mut self,
        account: K,
        key: KeyNumber,
        line: L,
        charge: Charge,
        earlier: Option<Remembered>,
    ) -> Result<Receipt, Refusal> {
        self.check_use(account, key, &charge)?;
        let touched = self.accounts.get(&account).expect("accounts are loaded before they are charged");
        let slot = charge.in_flight.as_ref().map(|in_flight| self.enter(in_flight, &touched.id, account, key));
        let slot = slot.transpose()?.flatten();
        let counted = charge.counted_route();
        let mut price = self.price(account, &charge, earlier)?;
        let of_account = touched.state.rate_status(self.now);
        let mut receipt = Receipt {
            account: touched.id.clone(),
            key,
            charged: if charge.hold.is_some() { Credits::ZERO } else { price },
            hold: charge.hold.map(|terms| Held { id: terms.id, amount: price, lease: terms.lease }),
            balance: touched.state.totals.balance,
            line: charge.line.clone(),
            day: self.now.day(),
            request_path: Arc::clone(&charge.request_path),
            rate: self.key(account, key).state.rate_status(self.now).unwrap_or(of_account),
            repeated: earlier.is_some(),
            delivery: None,
            slot,
            price_version: charge.price_version.filter(|_| earlier.is_none()),
            volume: counted.as_ref().map(|route| self.volume(account, route)),
        };
        let mut delivery = charge.delivery.map(|terms| (terms, Delivery::first(terms, self.now)));
        if let Some(earlier) = earlier {
            match self.repeat(earlier, &receipt, delivery).map_err(Refusal::Repeated)? {
                Repeat::Same(attempt) => {
                    return Ok(self.accept_again(account, charge.request_id, attempt, earlier, receipt));
                }
                Repeat::Anew(attempt) => {
                    delivery = delivery.zip(attempt).map(|((terms, _), attempt)| (terms, attempt));
                    receipt.repeated = false;
                    receipt.price_version = charge.price_version;
                    price = self.price(account, &charge, None)?;
                    receipt.hold = receipt.hold.map(|held| Held { amount: price, ..held });
                }
            }
        }
        let taking = match charge.is_backed && charge.hold.is_some() {
            true => Debit::Backed(price),
            false => Debit::of(price, charge.hold.is_some(), counted.is_some()),
        };
        let applied = self.apply(account, key, taking, charge.counted_tokens());
        let (rate, tokens) = applied.inspect_err(|refusal| self.raise_refused(account, refusal))?;
        receipt.rate = rate;
        self.raise_balance(account, None);
        receipt.balance = self.accounts[&account].state.totals.balance;
        let by_volume = counted.zip(charge.by_volume.as_ref());
        receipt.volume = by_volume.map(|(route, terms)| self.count_volume(account, route, &terms.tiers));
        if let Some(request) = charge.request_id {
            let delivery = delivery.map(|(_, attempt)| attempt);
            let expires_at = self.now.saturating_add(RequestId::RETENTION);
            let request_of =
                |attempt: Delivery| Attempt { request: request.clone(), number: attempt.tries, expires_at };
            receipt.delivery = delivery.map(request_of);
            let hold = charge.hold.map(|terms| terms.id);
            let result = StoredResult { charged: price, balance: receipt.balance, delivery, hold };
            self.results.insert((account, request), Remembered { result, expires_at });
        }
        match charge.hold {
            Some(terms) => self.open_hold(account, line, terms, &receipt, tokens),
            None => self.book((account, receipt.day, line, key, UsageKind::Charged), price, &receipt.request_path),
        }
        Ok(receipt)
    }

    /// Takes the price from the balance, and counts the request for the key and each parent key, or changes nothing.
    fn apply(
        &mut self,
        account: K,
        key: KeyNumber,
        taking: Debit,
        tokens: Option<u32>,
    ) -> Result<(RateStatus, Option<HeldTokens>), Refusal> {
        let mut state = self.accounts[&account].state;
        let mut rate = rule::apply(&mut state, taking, self.now)?;
        let held = tokens.map(|tokens| self.admit_tokens(account, key, tokens, rate)).transpose()?.flatten();
        self.count_for_keys(account, key, taking).map_err(|limit| Refusal::of_limit(limit, rate))?;
        rate = self.key(account, key).state.rate_status(self.now).unwrap_or(rate);
        if let Some(held) = &held {
            self.count_tokens(account, held);
            rate.tokens = self.token_status(account, key, held.count);
        }
        let touched = self.accounts.get_mut(&account).expect("the account was just read");
        (touched.state, touched.changed) = (state, true);
        Ok((rate, held))
    }

    /// Refunds one charge of a loaded account and returns the balance after it. `remembered` is the stored result for
    /// its idempotency key. It does not matter whether the key is still live.
    ///
    /// # Panics
    /// When the account or the key was not loaded, or a parent key.
    pub(crate) fn refund(
        &mut self,
        account: K,
        line: L,
        refund: &Refund,
        remembered: Option<Remembered>,
    ) -> Option<Credits> {
        let delivery = refund.delivery.as_ref();
        let known = delivery.and_then(|failed| self.known(account, &failed.request, remembered));
        let is_owed = repeat::is_owed(delivery, known, self.now);
        let touched = self.accounts.get_mut(&account).expect("accounts are loaded before they are refunded");
        if !is_owed {
            return Some(touched.state.totals.balance);
        }
        if !rule::apply_refund(&mut touched.state, refund.amount) {
            return None;
        }
        touched.changed = true;
        let balance = touched.state.totals.balance;
        self.refund_keys(account, refund);
        self.forget(account, delivery, known);
        if let Some((route, month)) = refund.counted_route().zip(refund.counted_in) {
            self.return_volume(account, route, month, refund.amount);
        }
        if refund.amount.is_positive() {
            self.book(
                (account, refund.day, line, refund.key, UsageKind::Refunded),
                refund.amount,
                &refund.request_path,
            );
        }
        Some(balance)
    }

    /// Marks an idempotency key as used up. `remembered` is the stored result for it.
    pub(crate) fn settle(&mut self, account: K, settlement: &Settlement, remembered: Option<Remembered>) {
        let Some(Remembered { result, expires_at }) = self.known(account, &settlement.request, remembered) else {
            return;
        };
        let result = StoredResult { delivery: result.delivery.map(Delivery::delivered), ..result };
        self.results.insert((account, settlement.request.clone()), Remembered { result, expires_at });
    }

    fn book(&mut self, row: Row<K, L>, amount: Credits, request_path: &Arc<str>) {
        let delta = self.usage.entry(row).or_insert_with(|| UsageDelta {
            calls: 0,
            amount: Credits::ZERO,
            request_path: Some(Arc::clone(request_path)),
        });
        delta.calls += 1;
        delta.amount = delta.amount.checked_add(amount).expect("no part of an account's total overflows");
        if delta.request_path.as_ref().is_some_and(|path| path != request_path) {
            delta.request_path = None;
        }
    }

    /// Returns everything the batch changes.
    #[must_use]
    pub(crate) fn finish(self) -> Changes<K, L> {
        let (mut accounts, mut alerts) = (Vec::new(), Vec::new());
        for (account, touched) in self.accounts.into_iter().filter(|(_, touched)| touched.changed) {
            accounts.push((account, touched.state));
            let raised = touched.state.alert.raised;
            if raised != touched.raised {
                alerts.push((account, raised));
            }
        }
        accounts.sort_unstable_by_key(|(account, _)| *account);
        alerts.sort_unstable_by_key(|(account, _)| *account);
        let changed = self.keys.into_iter().filter(|(_, touched)| touched.changed);
        let mut keys: Vec<_> =
            changed.map(|((account, number), touched)| (account, number, touched.state.meter)).collect();
        keys.sort_unstable_by_key(|(account, number, _)| (*account, *number));
        let change = |((account, day, line, key, kind), delta): (Row<K, L>, UsageDelta)| UsageChange {
            account,
            day,
            line,
            key,
            kind,
            calls: delta.calls,
            amount: delta.amount,
            request_path: delta.request_path,
        };
        let mut usage: Vec<UsageChange<K, L>> = self.usage.into_iter().map(change).collect();
        usage.sort_unstable_by(|a, b| {
            (a.day, a.account, &a.line, a.key, a.kind).cmp(&(b.day, b.account, &b.line, b.key, b.kind))
        });
        let results = self.results.into_iter().map(|((account, id), result)| (account, id, result)).collect();
        let volumes = self.volumes.into_iter().filter(|(_, touched)| touched.changed);
        let volumes = volumes.map(|((account, route), touched)| (account, route, touched.volume)).collect();
        let tokens = self.tokens.into_iter().filter(|(_, touched)| touched.changed);
        let tokens = tokens.map(|((account, scope), touched)| (account, scope, touched.window)).collect();
        let holds = self.holds.into_values().filter_map(TouchedHold::into_change).collect();
        Changes { accounts, keys, usage, results, volumes, tokens, holds, alerts, events: self.events }
    }
}

#[cfg(test)]
mod rows_tests;
#[cfg(test)]
mod tests;
