//! The results of requests with an id, stored and of the batch: which to repeat, replace or forget.

use std::hash::Hash;

use super::Tally;
use super::repeat::Repeat;
use crate::charging::charge::Receipt;
use crate::charging::delivery::{Attempt, Delivery, DeliveryTerms, Repetition};
use crate::charging::hold::{HoldAction, HoldId, SettleReason};
use crate::charging::posting::{Remembered, StoredResult};
use crate::charging::request_id::RequestId;
use crate::clock::Timestamp;

impl<K: Copy + Ord + Hash, L: Clone + Ord + Hash> Tally<K, L> {
    /// The hold to load before a charge whose stored result is `remembered`; `None` when there is none, or it is
    /// loaded.
    #[must_use]
    pub(crate) fn missing_hold(&self, remembered: Option<&Remembered>) -> Option<HoldId> {
        remembered.and_then(|remembered| remembered.result.hold).filter(|id| !self.holds.contains_key(id))
    }

    /// The result for a request, including this batch's changes to the `stored` one.
    pub(super) fn known(&self, account: K, request: &RequestId, stored: Option<Remembered>) -> Option<Remembered> {
        let known = self.results.get(&(account, request.clone())).copied().or(stored);
        known.filter(|known| self.now < known.expires_at)
    }

    /// How to handle a request that was accepted before. `delivery` is the record that a first attempt would store.
    pub(super) fn repeat(
        &self,
        Remembered { result, .. }: Remembered,
        receipt: &Receipt,
        delivery: Option<(DeliveryTerms, Delivery)>,
    ) -> Result<Repeat, Repetition> {
        if result.hold.is_some() != receipt.hold.is_some() {
            // One was charged its price, the other holds it: not the same request.
            return Err(Repetition::OtherRequest);
        }
        let attempt = match (result.delivery, delivery) {
            (Some(last), Some((terms, _))) => Some(last.again(terms, self.now)?),
            _ => None,
        };
        let Some((id, held)) = result.hold.zip(receipt.hold) else { return Ok(Repeat::Same(attempt)) };
        let settled = self.holds.get(&id).map(|touched| touched.hold.settled.map(|settled| settled.reason));
        match settled {
            // A retry must not cost more than the request's hold.
            Some(None) if held.amount > result.charged => Err(Repetition::OtherRequest),
            // Its cost is paid, and a retry could use more. Only callers without an idempotency key need the result.
            Some(Some(SettleReason::Report)) if attempt.is_some() => Err(Repetition::UsedUp),
            Some(None | Some(SettleReason::Report)) => Ok(Repeat::Same(attempt)),
            Some(Some(_)) | None => Ok(Repeat::Anew(attempt)),
        }
    }

    /// Accepts a request again, uncharged. If its hold is open, it is this attempt's now, with its own lease.
    pub(super) fn accept_again(
        &mut self,
        account: K,
        request: Option<RequestId>,
        attempt: Option<Delivery>,
        Remembered { result, expires_at }: Remembered,
        mut receipt: Receipt,
    ) -> Receipt {
        match (&mut receipt.hold, result.hold) {
            (Some(held), Some(id)) => {
                (held.id, held.amount) = (id, result.charged);
                let until = self.now.saturating_add(held.lease);
                if let Some(touched) = self.holds.get_mut(&id)
                    && let Some((renewed, _)) = touched.hold.after(HoldAction::Renew { until }, self.now)
                {
                    touched.set(renewed);
                }
            }
            _ => receipt.charged = result.charged,
        }
        // A refund is booked on the day of the charge.
        receipt.day = expires_at.saturating_sub(RequestId::RETENTION).day();
        match request.zip(attempt) {
            None => receipt.balance = result.balance,
            Some((request, attempt)) => {
                receipt.delivery = Some(Attempt { request: request.clone(), number: attempt.tries, expires_at });
                let result = StoredResult { delivery: Some(attempt), ..result };
                self.results.insert((account, request), Remembered { result, expires_at });
            }
        }
        receipt
    }

    /// Forgets the idempotency key of a request that is not charged.
    pub(super) fn forget(&mut self, account: K, failed: Option<&Attempt>, known: Option<Remembered>) {
        if let Some((failed, known)) = failed.zip(known) {
            // In the past for every clock.
            let forgotten = Remembered { expires_at: Timestamp::from_unix_millis(0), ..known };
            self.results.insert((account, failed.request.clone()), forgotten);
        }
    }
}
