//! The events of a batch, and the alerts that its accounts raise.

use std::hash::Hash;

use super::Tally;
use crate::charging::refusal::Refusal;
use crate::events::event::NewEvent;
use crate::events::event_data::EventData;
use crate::money::credits::Credits;

impl<K: Copy + Ord + Hash, L: Clone + Ord + Hash> Tally<K, L> {
    /// Adds events of a loaded account.
    pub(super) fn add_events(&mut self, account: K, events: Vec<EventData>) {
        // Most batches have none.
        if events.is_empty() {
            return;
        }
        let id = self.accounts.get(&account).expect("accounts are loaded before they change").id.clone();
        let event = |data| (account, NewEvent { account: Some(id.clone()), data, created_at: self.now });
        self.events.extend(events.into_iter().map(event));
    }

    /// Adds an event if the balance has just become low or exhausted. `required` is the amount that a refused request
    /// needed.
    pub(super) fn raise_balance(&mut self, account: K, required: Option<Credits>) {
        let touched = self.accounts.get_mut(&account).expect("accounts are loaded before they change");
        let (totals, threshold) = (touched.state.totals, touched.state.alert.threshold);
        let (balance, unspent) = (totals.balance, totals.unspent());
        let level = touched.state.alert.level(unspent, required);
        let raised = touched.state.alert.raised.raise(level, threshold);
        if raised.is_empty() {
            return;
        }
        touched.changed = true;
        let events = raised.into_iter().filter_map(|level| EventData::of_balance(level, balance, threshold, required));
        self.add_events(account, events.collect());
    }

    /// Adds an event, once until credits are added, if the balance did not cover a request.
    pub(super) fn raise_refused(&mut self, account: K, refusal: &Refusal) {
        if let Refusal::InsufficientCredits { required, .. } = refusal {
            self.raise_balance(account, Some(*required));
        }
    }
}
