//! The holds that a batch opens and settles: they are neither charges nor refunds until they are settled.

use std::hash::Hash;

use super::repeat::{is_taken_over, of_hold};
use super::touched::TouchedHold;
use super::{Tally, UsageKind};
use crate::charging::charge::Receipt;
use crate::charging::hold::{Hold, HoldAction, HoldId, HoldTerms, HoldUpdate, HoldUpdated, SettleReason, SettledHold};
use crate::charging::posting::Remembered;
use crate::charging::rule::apply_settled;
use crate::charging::tokens::HeldTokens;
use crate::charging::volume::CountedRoute;
use crate::events::event_data::EventData;
use crate::money::credits::Credits;

impl<K: Copy + Ord + Hash, L: Clone + Ord + Hash> Tally<K, L> {
    /// A hold that the batch has loaded or opened. Load its account and its key before [`Tally::update_hold`].
    #[must_use]
    pub(crate) fn hold(&self, id: &HoldId) -> Option<(K, &Hold)> {
        self.holds.get(id).map(|touched| (touched.account, &touched.hold))
    }

    /// Adds a stored hold, once per batch. `line` is the backend's key for its usage line.
    pub(crate) fn load_hold(&mut self, account: K, line: L, hold: Hold) {
        let touched = TouchedHold { account, line, hold, is_new: false, changed: false };
        self.holds.entry(touched.hold.id).or_insert(touched);
    }

    pub(super) fn open_hold(
        &mut self,
        account: K,
        line: L,
        terms: HoldTerms,
        receipt: &Receipt,
        tokens: Option<HeldTokens>,
    ) {
        let amount = receipt.hold.map_or(Credits::ZERO, |held| held.amount);
        let of = (receipt.line.clone(), receipt.request_path.clone());
        let hold = Hold::open(terms, receipt.account.clone(), receipt.key, amount, of, tokens, self.now);
        self.holds.insert(terms.id, TouchedHold { account, line, hold, is_new: true, changed: true });
    }

    /// Settles a loaded hold, or renews its lease. `remembered` is the stored result for the idempotency key of the
    /// update. It does not matter whether the key is still live.
    ///
    /// # Panics
    /// When the hold, its account, its key, a parent key, or a window that it counts in was not loaded.
    pub(crate) fn update_hold(&mut self, update: &HoldUpdate, remembered: Option<Remembered>) -> HoldUpdated {
        let touched = self.holds.get(&update.id).expect("holds are loaded before they are updated");
        let (account, line, hold) = (touched.account, touched.line.clone(), touched.hold.clone());
        let delivery = update.delivery.as_ref();
        let known = delivery.and_then(|failed| self.known(account, &failed.request, remembered));
        let known = of_hold(known, &hold);
        let after = match is_taken_over(delivery, known) {
            true => None,
            false => hold.after(update.action, self.now),
        };
        let after = after.and_then(|(after, excess)| Some((self.settled(account, after)?, excess)));
        let changed = after.is_some();
        let (mut hold, excess) = after.unwrap_or((hold, Credits::ZERO));
        if let Some(SettledHold { captured, reason, .. }) = hold.settled.filter(|_| changed) {
            hold.upstream.clone_from(&update.upstream);
            self.settle_keys(account, &hold, captured);
            self.settle_tokens(account, &hold, update);
            self.raise_balance(account, None);
            if reason == SettleReason::Expiry {
                self.add_events(account, vec![EventData::of_expired(&hold, captured)]);
            }
            let kind = match reason {
                SettleReason::Report | SettleReason::NoReport => UsageKind::Charged,
                SettleReason::Expiry => UsageKind::Expired,
                SettleReason::Release => UsageKind::Released,
            };
            self.book((account, hold.created_at.day(), line, hold.key, kind), captured, &hold.request_path);
        }
        if changed && matches!(update.action, HoldAction::Release) {
            self.forget(account, delivery, known);
            let month = update.counted_in.unwrap_or_else(|| hold.created_at.day().month());
            self.return_volume(account, CountedRoute::of(&hold.line), month, hold.amount);
        }
        if changed {
            self.holds.get_mut(&update.id).expect("the hold was just read").set(hold.clone());
        }
        let balance = self.accounts.get(&account).expect("accounts are loaded before their holds are updated");
        HoldUpdated { hold, balance: balance.state.totals.balance, changed, excess }
    }

    /// Changes the account's totals for a hold that has just been settled. If the account cannot be charged more than
    /// was held, it is charged no more. `None`, and nothing changes, if the stored totals contradict each other: a
    /// corrupt row must not stop the batch, and `verify` finds it.
    fn settled(&mut self, account: K, hold: Hold) -> Option<Hold> {
        let touched = self.accounts.get_mut(&account).expect("accounts are loaded before their holds are updated");
        let Some(settled) = hold.settled else { return Some(hold) };
        let amounts = [settled.captured, settled.captured.min(hold.amount)];
        let fits = |captured: &Credits| apply_settled(&mut touched.state, hold.amount, *captured);
        let captured = amounts.into_iter().find(fits)?;
        touched.changed = true;
        Some(Hold { settled: Some(SettledHold { captured, ..settled }), ..hold })
    }
}
