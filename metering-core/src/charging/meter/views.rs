//! The newest state of keys that this node has seen, and whether a request may be served before its charge is decided.
//!
//! A view only predicts whether the upstream's work will be wasted. The store decides every charge, and no response is
//! passed on before that. So no receipt, header or ledger entry may use it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;

use super::{MeterError, MeterStats};
use crate::access::account::AccountId;
use crate::access::key::KeyHash;
use crate::charging::charge::{Charge, Decision, Receipt};
use crate::charging::posting::{Outcome, Posting};
use crate::charging::rate::{LimitWindow, RateStatus};
use crate::clock::{Clock, Timestamp};
use crate::money::credits::Credits;
use crate::shown_fields::shown_fields;
use crate::usage::UsageLine;

/// How long a view counts. A key that is busy is seen again within milliseconds; for one that is not, waiting for the
/// store costs little. It also bounds how long requests with a key that was revoked elsewhere are forwarded in vain.
const MAX_AGE_MILLIS: i64 = 1_000;
/// The balance must cover the price this many times. Other nodes, and other keys of the account, spend from it too.
const MIN_PRICES: i64 = 100;
/// More than one in this many of a rate limit's requests must be left, because other nodes and keys use some too.
const RATE_RESERVE: u32 = 10;
/// How many routes, each with the address of its client, are remembered of a key.
const MAX_USES: usize = 8;
/// A generation ends when it has this many keys; those not seen since the one before are then forgotten. So at most
/// twice as many are kept. A key takes about 450 bytes with four routes, and 200 fewer with one.
const GENERATION: usize = 16_384;

/// The views of a meter. They stay empty if its store decides before it flushes.
pub(super) struct Views {
    clock: Arc<dyn Clock>,
    stats: Arc<MeterStats>,
    /// Whether there ever was a view. Without one, nothing is locked.
    has_seen: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    young: HashMap<KeyHash, View>,
    old: HashMap<KeyHash, View>,
    /// By key, the requests that were started and whose charges are not decided yet.
    started: HashMap<KeyHash, Ahead>,
}

/// The last seen state of a key.
struct View {
    account: AccountId,
    balance: Credits,
    rate: RateStatus,
    at: Timestamp,
    /// The usage of the key. A key may be restricted to routes and networks, so the same must have been accepted.
    uses: Vec<Use>,
}

struct Use {
    line: UsageLine,
    address: Option<IpAddr>,
    at: Timestamp,
}

/// Requests that were started, and their price in total.
#[derive(Clone, Copy, Default)]
struct Ahead {
    requests: u32,
    price: Credits,
}

/// The key of a charge, and the address of its request.
#[derive(Clone, Copy)]
pub(super) struct Used {
    key: KeyHash,
    address: Option<IpAddr>,
}

/// A request that was started before its charge was decided. It counts as in flight until this is dropped.
pub(super) struct Started {
    views: Arc<Views>,
    key: KeyHash,
    price: Credits,
    account: AccountId,
}

impl Views {
    pub(super) fn new(clock: Arc<dyn Clock>, stats: Arc<MeterStats>) -> Self {
        Self { clock, stats, has_seen: AtomicBool::new(false), state: Mutex::default() }
    }

    /// Starts the request of a charge, if the store will clearly accept that.
    pub(super) fn start(self: &Arc<Self>, charge: &Charge) -> Option<Started> {
        let is_plain = charge.hold.is_none() && charge.request_id.is_none() && charge.by_volume.is_none();
        if !is_plain || !self.has_seen.load(Ordering::Relaxed) {
            return None;
        }
        let (key, price, now) = (charge.key, charge.price, self.clock.now());
        let mut state = self.state();
        let before = state.started.get(&key).copied().unwrap_or_default();
        let view = state.young.get(&key).or_else(|| state.old.get(&key))?;
        if !view.is_clearly_good(charge, before, now) {
            return None;
        }
        let account = view.account.clone();
        let after = Ahead { requests: before.requests + 1, price: before.price.checked_add(price)? };
        state.started.insert(key, after);
        drop(state);
        Some(Started { views: Arc::clone(self), key, price, account })
    }

    /// Records the state that a commit shows of the keys that it charged. The commit began at `at`.
    pub(super) fn note(&self, used: &[Option<Used>], outcomes: &[Outcome], at: Timestamp) {
        let mut state = self.state();
        for (used, outcome) in used.iter().zip(outcomes) {
            let Some(used) = used else { continue };
            match outcome {
                // A repeated result shows an earlier balance.
                Outcome::Decided(Decision::Accepted(receipt)) if receipt.repeated => {}
                // A key with a limit on its requests in flight is counted in the decision, so it must wait for the
                // decision.
                Outcome::Decided(Decision::Accepted(receipt)) if receipt.slot.is_none() => state.see(used, receipt, at),
                _ => drop(state.forget(&used.key)),
            }
        }
        drop(state);
        self.has_seen.store(true, Ordering::Relaxed);
    }

    /// Forgets everything: the store failed.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        (state.young, state.old) = (HashMap::default(), HashMap::default());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn see(&mut self, used: &Used, receipt: &Receipt, at: Timestamp) {
        let Receipt { account, balance, rate, line, .. } = receipt;
        let mut uses = self.forget(&used.key).map(|view| view.uses).unwrap_or_default();
        uses.retain(|known| known.line != *line || known.address != used.address);
        // The longest unused is the first.
        uses.drain(..(uses.len() + 1).saturating_sub(MAX_USES));
        // Most keys are used for one route, and a vector makes room for four.
        uses.reserve_exact(1);
        uses.push(Use { line: line.clone(), address: used.address, at });
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(used.key, View { account: account.clone(), balance: *balance, rate: *rate, at, uses });
    }

    fn forget(&mut self, key: &KeyHash) -> Option<View> {
        let old = self.old.remove(key);
        self.young.remove(key).or(old)
    }
}

impl View {
    /// Whether the store will clearly accept a charge, given the charges `started` before it that are not decided yet.
    ///
    /// Budgets are not visible here, nor are limits of parent keys: a refusal by one drops the view.
    fn is_clearly_good(&self, charge: &Charge, started: Ahead, now: Timestamp) -> bool {
        // A time in the future comes from a clock that was set back.
        let is_fresh =
            |at: Timestamp| (0..=MAX_AGE_MILLIS).contains(&now.unix_millis().saturating_sub(at.unix_millis()));
        let is_same = |used: &Use| used.line == charge.line && used.address == charge.address;
        let needed = charge.price.atoms().saturating_mul(MIN_PRICES);
        let left = self.balance.checked_sub(started.price);
        let is_covered = left.is_some_and(|left| left.is_positive() && left.atoms() >= needed);
        let limits = self.rate.limits;
        let windows = [(LimitWindow::Minute, limits.requests_per_minute), (LimitWindow::Day, limits.requests_per_day)];
        // The request itself is in flight too.
        let in_flight = started.requests.saturating_add(1);
        let has_room = windows.into_iter().all(|(window, limit)| {
            let left = self.rate.remaining(window);
            left.is_none_or(|left| left > limit / RATE_RESERVE && left > in_flight.saturating_mul(2))
        });
        let is_known = self.uses.iter().any(|used| is_same(used) && is_fresh(used.at));
        is_fresh(self.at) && is_known && is_covered && has_room
    }
}

impl Used {
    /// The key and the address of each charge among the postings.
    pub(super) fn by(postings: &[Posting]) -> Vec<Option<Self>> {
        let of = |posting: &Posting| match posting {
            Posting::Charge(charge) => Some(Self { key: charge.key, address: charge.address }),
            Posting::Refund(_) | Posting::Settle(_) | Posting::Hold(_) => None,
        };
        postings.iter().map(of).collect()
    }
}

impl Started {
    /// Who will be charged.
    pub(super) const fn account(&self) -> &AccountId {
        &self.account
    }

    /// The charge has an outcome. If it is not accepted, the request was started in vain.
    pub(super) fn ended(self, answer: &Result<Outcome, MeterError>) {
        let stats = &self.views.stats;
        let counter = match answer {
            Ok(Outcome::Decided(Decision::Accepted(_))) => return,
            Ok(Outcome::Decided(Decision::Refused(_))) => &stats.refused_early,
            Ok(_) | Err(_) => &stats.failed_early,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let mut state = self.views.state();
        let Some(started) = state.started.get_mut(&self.key) else { return };
        started.requests -= 1;
        started.price = started.price.checked_sub(self.price).unwrap_or(Credits::ZERO);
        if started.requests == 0 {
            state.started.remove(&self.key);
        }
    }
}

shown_fields!(Views:);

#[cfg(test)]
mod tests;
