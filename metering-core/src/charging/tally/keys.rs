//! The keys that a batch checks and counts: each key, and every parent key.

use std::hash::Hash;

use crate::access::account::AccountId;
use crate::access::key_id::KeyNumber;
use crate::access::key_use::{KeyRefusal, KeyUse};
use crate::access::scope::Scope;
use crate::charging::charge::{Charge, Refund};
use crate::charging::hold::Hold;
use crate::charging::in_flight::{InFlight, Slot};
use crate::charging::key_meter::{KeyLimit, KeyMeter, KeyState};
use crate::charging::refusal::Refusal;
use crate::charging::rule::Debit;
use crate::money::alert::AlertLevel;
use crate::money::credits::Credits;

use super::Tally;
use super::touched::TouchedKey;

impl<K: Copy + Ord + Hash, L: Clone + Ord + Hash> Tally<K, L> {
    /// The next key to load before a charge or a refund of `key`: the key itself, or a parent key.
    #[must_use]
    pub(crate) fn missing_key(&self, account: K, key: KeyNumber) -> Option<KeyNumber> {
        let mut next = Some(key);
        while let Some(number) = next {
            match self.keys.get(&(account, number)) {
                Some(touched) => next = touched.state.parent,
                None => return Some(number),
            }
        }
        None
    }

    /// Adds the stored state of a key, once per batch.
    pub(crate) fn load_key(&mut self, account: K, key: KeyNumber, state: KeyState) {
        self.keys.entry((account, key)).or_insert(TouchedKey { state, changed: false });
    }

    /// Whether the key, and each parent key, may be used for the request.
    pub(super) fn check_use(&self, account: K, key: KeyNumber, charge: &Charge) -> Result<(), Refusal> {
        let route = Some((&*charge.line.http_method, charge.line.template()));
        let used_for = KeyUse { scope: Some(Scope::Call), route, address: charge.address, at: self.now };
        if !self.chain(account, key).all(|(_, touched)| touched.state.is_live) {
            return Err(Refusal::UnknownKey);
        }
        for (_, touched) in self.chain(account, key) {
            used_for.check(&touched.state.terms, touched.state.is_live).map_err(|refusal| match refusal {
                KeyRefusal::NotLive => Refusal::UnknownKey,
                refusal => Refusal::Key(refusal),
            })?;
        }
        Ok(())
    }

    /// Counts the request as in flight; `None` if none of its keys has a limit on that.
    pub(super) fn enter(
        &self,
        in_flight: &InFlight,
        id: &AccountId,
        account: K,
        key: KeyNumber,
    ) -> Result<Option<Slot>, Refusal> {
        if self.chain(account, key).all(|(_, touched)| touched.state.terms.max_in_flight == 0) {
            return Ok(None);
        }
        let limits: Vec<_> =
            self.chain(account, key).map(|(number, touched)| (number, touched.state.terms.max_in_flight)).collect();
        in_flight.enter(id, &limits).map(Some).ok_or(Refusal::TooManyInFlight)
    }

    /// Counts an accepted request for the key and each parent key, or changes nothing.
    pub(super) fn count_for_keys(&mut self, account: K, key: KeyNumber, taking: Debit) -> Result<(), KeyLimit> {
        let price = taking.amount();
        let mut counted = Vec::new();
        let mut refused = None;
        for (number, touched) in self.chain(account, key) {
            if touched.state.terms.is_counted() {
                match touched.state.admit(price, self.now) {
                    Ok(meter) => counted.push((number, meter)),
                    Err(limit) => {
                        refused = Some((number, limit));
                        break;
                    }
                }
            }
        }
        if let Some((number, limit)) = refused {
            if let KeyLimit::Budget(_) = limit {
                self.raise_exhausted(account, number);
            }
            return Err(limit);
        }
        for (number, meter) in counted {
            let touched = self.keys.get_mut(&(account, number)).expect("the key was just read");
            (touched.state.meter, touched.changed) = (meter, true);
            // Most held credits return to the budget, so the settlement decides.
            if !matches!(taking, Debit::Hold(_) | Debit::Backed(_)) {
                self.raise_key(account, number, false);
            }
        }
        Ok(())
    }

    /// Notifies the owner, once in a period, that a budget refused a request.
    fn raise_exhausted(&mut self, account: K, key: KeyNumber) {
        let touched = self.keys.get_mut(&(account, key)).expect("the key was just read");
        if let Some(meter) = touched.state.exhausted(self.now)
            && !meter.raised.includes(AlertLevel::Short)
        {
            (touched.state.meter, touched.changed) = (meter, true);
            self.raise_key(account, key, true);
        }
    }

    /// Adds the events of a budget that has just changed, or has just refused a request.
    fn raise_key(&mut self, account: K, key: KeyNumber, refused: bool) {
        let touched = self.keys.get_mut(&(account, key)).expect("the key was just read");
        let before = touched.state.meter.raised;
        let events = touched.state.raise(refused, self.now);
        touched.changed |= touched.state.meter.raised != before;
        self.add_events(account, events);
    }

    /// Gives a refund back to the budgets of the key and each parent key.
    pub(super) fn refund_keys(&mut self, account: K, refund: &Refund) {
        self.change_meters(account, refund.key, |state| state.refunded(refund.amount, refund.day));
    }

    /// Returns the part of a hold of `day` that was not captured to the budgets of the key and each parent key.
    pub(super) fn settle_keys(&mut self, account: K, hold: &Hold, captured: Credits) {
        let day = hold.created_at.day();
        self.change_meters(account, hold.key, |state| state.settled(hold.amount, captured, day));
    }

    /// Changes the meters of the key and each parent key.
    fn change_meters(&mut self, account: K, key: KeyNumber, after: impl Fn(&KeyState) -> KeyMeter) {
        let numbers: Vec<_> = self.chain(account, key).map(|(number, _)| number).collect();
        for number in numbers {
            let touched = self.keys.get_mut(&(account, number)).expect("the key was just read");
            let meter = after(&touched.state);
            touched.changed |= meter != touched.state.meter;
            touched.state.meter = meter;
            self.raise_key(account, number, false);
        }
    }

    pub(super) fn key(&self, account: K, key: KeyNumber) -> &TouchedKey {
        self.keys.get(&(account, key)).expect("keys are loaded before they are charged")
    }

    /// The key, and its parent keys.
    pub(super) fn chain(&self, account: K, key: KeyNumber) -> impl Iterator<Item = (KeyNumber, &TouchedKey)> {
        let at = move |number| (number, self.key(account, number));
        std::iter::successors(Some(at(key)), move |(_, touched)| touched.state.parent.map(at))
    }
}
