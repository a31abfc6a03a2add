//! Commits a batch of charges and refunds: a [`Tally`] decides it, then it is written. Writing cannot fail. Events are
//! not kept.

use crate::access::key_id::KeyNumber;
use crate::charging::charge::{Decision, Refusal};
use crate::charging::hold::{HoldUpdate, HoldUpdated};
use crate::charging::key_meter::KeyState;
use crate::charging::posting::{Outcome, Posting, Remembered};
use crate::charging::request_id::RequestId;
use crate::charging::tally::{Changes, Tally, UsageChange};
use crate::charging::volume::CountedRoute;
use crate::clock::Timestamp;
use crate::usage::{ACTIVITY_KEPT, Activity, UsageLine};

use super::state::State;

impl State {
    pub(super) fn commit(&mut self, postings: Vec<Posting>, now: Timestamp) -> Vec<Outcome> {
        let mut tally = Tally::new(now);
        let outcomes = postings.into_iter().map(|posting| self.decide(&mut tally, posting, now)).collect();
        self.write(tally.finish(), now);
        outcomes
    }

    fn decide(&self, tally: &mut Tally<usize, UsageLine>, posting: Posting, now: Timestamp) -> Outcome {
        match posting {
            Posting::Charge(charge) => {
                let Some((account, key)) = self.working_secret(&charge.key, now) else {
                    return Outcome::Decided(Decision::Refused(Refusal::UnknownKey));
                };
                self.load(tally, account, key);
                let remembered = charge.request_id.as_ref().map(|id| id.of_key_number(key));
                let remembered = remembered.and_then(|id| self.remembered(account, &id, now));
                if let Some((account, hold)) = tally.missing_hold(remembered.as_ref()).and_then(|id| self.hold(&id)) {
                    tally.load_hold(account, hold.line.clone(), hold.clone());
                }
                self.load_volume(tally, account, charge.counted_route());
                let line = charge.line.clone();
                Outcome::Decided(tally.charge(account, key, line, charge, remembered))
            }
            Posting::Refund(refund) => {
                let Some(&account) = self.ids.get(&refund.account) else {
                    return Outcome::Refunded(None);
                };
                let is_stored = self.accounts[account].stored(refund.key).is_some();
                let refund = if is_stored { refund } else { refund.of_first_key() };
                self.load(tally, account, refund.key);
                self.load_volume(tally, account, refund.counted_route());
                let request = refund.delivery.as_ref().map(|failed| &failed.request);
                let remembered = request.and_then(|id| self.remembered(account, id, now));
                Outcome::Refunded(tally.refund(account, refund.line.clone(), &refund, remembered))
            }
            Posting::Hold(update) => Outcome::Hold(self.update_hold(tally, &update, now)),
            Posting::Settle(settlement) => {
                if let Some(&account) = self.ids.get(&settlement.account) {
                    let remembered = self.remembered(account, &settlement.request, now);
                    tally.settle(account, &settlement, remembered);
                }
                Outcome::Settled
            }
        }
    }

    fn update_hold(
        &self,
        tally: &mut Tally<usize, UsageLine>,
        update: &HoldUpdate,
        now: Timestamp,
    ) -> Option<HoldUpdated> {
        if let (None, Some((account, hold))) = (tally.hold(&update.id), self.hold(&update.id)) {
            tally.load_hold(account, hold.line.clone(), hold.clone());
        }
        let (account, hold) = tally.hold(&update.id).filter(|(_, hold)| hold.account == update.account)?;
        let (key, counted) = (hold.key, update.counted_route(hold));
        self.load(tally, account, key);
        self.load_volume(tally, account, counted);
        let request = update.delivery.as_ref().map(|failed| &failed.request);
        let remembered = request.and_then(|id| self.remembered(account, id, now));
        Some(tally.update_hold(update, remembered))
    }

    fn load(&self, tally: &mut Tally<usize, UsageLine>, account: usize, key: KeyNumber) {
        let record = &self.accounts[account];
        if !tally.is_loaded(account) {
            tally.load(account, record.account.id.clone(), record.meter_state());
        }
        while let Some(number) = tally.missing_key(account, key) {
            let stored = record.stored(number).expect("a key in use and its parents are not removed");
            tally.load_key(account, number, KeyState::of(&stored.key, stored.meter.unwrap_or_default()));
        }
    }

    fn load_volume(&self, tally: &mut Tally<usize, UsageLine>, account: usize, counted: Option<CountedRoute>) {
        if let Some(route) = counted.filter(|route| tally.lacks_volume(account, route)) {
            let stored = self.accounts[account].volumes.get(&route).cloned().unwrap_or_default();
            tally.load_volume(account, route, stored);
        }
    }

    fn remembered(&self, account: usize, request: &RequestId, now: Timestamp) -> Option<Remembered> {
        self.accounts[account].results.get(request).copied().filter(|remembered| now < remembered.expires_at)
    }

    fn write(&mut self, changes: Changes<usize, UsageLine>, now: Timestamp) {
        for (account, state) in changes.accounts {
            let record = &mut self.accounts[account];
            (record.account.totals, record.account.alert) = (state.totals, state.alert);
            (record.minute, record.day) = (state.minute, state.day);
        }
        for (account, number, meter) in changes.keys {
            let stored = self.accounts[account].keys.iter_mut().find(|stored| stored.key.number == number);
            stored.expect("a key in use is not removed").meter = Some(meter);
        }
        for change in changes.usage {
            self.write_usage(change, now);
        }
        for (account, route, volume) in changes.volumes {
            self.accounts[account].volumes.insert(route, volume);
        }
        for change in changes.holds {
            self.accounts[change.account].holds.insert(change.hold.id, change.hold);
        }
        for (account, request, remembered) in changes.results {
            self.accounts[account].results.insert(request, remembered);
        }
    }

    fn write_usage(&mut self, change: UsageChange<usize, UsageLine>, now: Timestamp) {
        let number = self.next_number();
        let record = &mut self.accounts[change.account];
        let total = record.usage.entry((change.day, change.line.clone(), change.key)).or_default();
        total.calls += change.added_calls();
        total.atoms += i128::from(change.added_credits().atoms());
        let amount =
            change.added_credits().checked_neg().expect("amounts are not negative, so negating cannot overflow");
        let kind = change.kind.into();
        let entry = Activity {
            id: format!("use_{number}"),
            kind,
            amount,
            description: None,
            line: Some(change.line),
            request_path: change.request_path,
            calls: change.calls,
            payment: None,
            key: Some(change.key),
            created_at: now,
        };
        record.recent.insert(number, entry);
        // Trim only at twice the bound, so that the cost per entry is negligible.
        let bound = ACTIVITY_KEPT as usize;
        if record.recent.len() > 2 * bound {
            while record.recent.len() > bound {
                record.recent.pop_first();
            }
        }
    }
}
