//! Holds in the model: each with how it was settled, and what that changed.

use metering_core::Charge;
use metering_core::access::KeyNumber;
use metering_core::charging::{
    CountedRoute, Held, Hold, HoldAction, HoldId, HoldTerms, HoldUpdate, HoldUpdated, SettleReason, SettledHold,
};
use metering_core::clock::Timestamp;
use metering_core::events::EventKind;
use metering_core::money::Credits;
use metering_core::usage::ActivityKind;

use super::{Event, Owner, credits};

fn atoms(amount: Credits) -> i128 {
    i128::from(amount.atoms())
}

impl Owner {
    /// The sum of all open holds.
    pub(crate) fn held(&self) -> i128 {
        self.open_holds().map(|hold| atoms(hold.amount)).sum()
    }

    pub(crate) fn open_holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.iter().filter(|hold| hold.settled.is_none())
    }

    /// Opens the hold of an accepted charge.
    pub(super) fn open(&mut self, terms: HoldTerms, key: KeyNumber, charge: &Charge, now: Timestamp) {
        let most = charge.price.atoms();
        self.holds.push(Hold {
            id: terms.id,
            account: self.made.id.clone(),
            key,
            amount: charge.price,
            fallback: Credits::from_atoms(terms.fallback.atoms().clamp(0, most)),
            line: charge.line.clone(),
            request_path: charge.request_path.clone(),
            created_at: now,
            expires_at: now.saturating_add(terms.lease),
            settled: None,
            tokens: None,
            upstream: None,
        });
    }

    /// The hold that a repeated request gets, with its lease renewed; `None` if it gets a new hold. `Err` if it needs
    /// more than is held.
    pub(super) fn held_again(
        &mut self,
        id: HoldId,
        terms: HoldTerms,
        price: Credits,
        now: Timestamp,
    ) -> Result<Option<Held>, ()> {
        let Some(hold) = self.holds.iter_mut().find(|hold| hold.id == id) else { return Ok(None) };
        match hold.settled {
            None if price > hold.amount => return Err(()),
            None => hold.expires_at = hold.expires_at.max(now.saturating_add(terms.lease)),
            Some(SettledHold { reason: SettleReason::Report, .. }) => {}
            Some(_) => return Ok(None),
        }
        Ok(Some(Held { id, amount: hold.amount, lease: terms.lease }))
    }

    /// Updates a hold; `None` if there is none, or no longer.
    pub(crate) fn update_hold(&mut self, update: &HoldUpdate, now: Timestamp) -> Option<HoldUpdated> {
        let index = self.holds.iter().position(|hold| hold.id == update.id)?;
        let hold = self.holds[index].clone();
        let cost = match update.action {
            HoldAction::Capture { cost, .. } => atoms(cost).max(0),
            _ => 0,
        };
        let end = match update.action {
            HoldAction::Renew { .. } => None,
            HoldAction::Expire if now < hold.expires_at => None,
            HoldAction::Expire => Some((SettleReason::Expiry, ActivityKind::HoldExpired, atoms(hold.fallback))),
            HoldAction::CaptureFallback => Some((SettleReason::NoReport, ActivityKind::Usage, atoms(hold.fallback))),
            HoldAction::Release => Some((SettleReason::Release, ActivityKind::HoldReleased, 0)),
            HoldAction::Capture { may_exceed: true, .. } => Some((SettleReason::Report, ActivityKind::Usage, cost)),
            HoldAction::Capture { .. } => {
                Some((SettleReason::Report, ActivityKind::Usage, cost.min(atoms(hold.amount))))
            }
        };
        let mut changed = false;
        match (end, update.action) {
            _ if hold.settled.is_some() => {}
            (Some((reason, kind, captured)), _) => {
                // An amount that does not fit is not captured beyond the hold.
                let fits = self.settle(index, reason, kind, captured, now)
                    || self.settle(index, reason, kind, captured.min(atoms(hold.amount)), now);
                assert!(fits, "what is held always fits");
                self.raise_keys(hold.key, now);
                self.raise_balance(None, now);
                if reason == SettleReason::Release {
                    self.uncount(&CountedRoute::of(&hold.line), hold.created_at.day().month(), hold.amount);
                }
                if reason == SettleReason::Expiry {
                    self.tell(EventKind::HoldExpired, now);
                }
                changed = true;
            }
            (None, HoldAction::Renew { until }) if until > hold.expires_at => {
                self.holds[index].expires_at = until;
                changed = true;
            }
            (None, _) => {}
        }
        let excess = if changed { credits((cost - atoms(hold.amount)).max(0)) } else { Credits::ZERO };
        let (hold, balance) = (self.holds[index].clone(), credits(self.balance()));
        Some(HoldUpdated { hold, balance, changed, excess })
    }

    /// Settles a hold if all amounts fit, and returns whether they do.
    fn settle(
        &mut self,
        index: usize,
        reason: SettleReason,
        kind: ActivityKind,
        captured: i128,
        now: Timestamp,
    ) -> bool {
        let hold = self.holds[index].clone();
        let booked_on = hold.created_at.day();
        let Ok(fitting) = i64::try_from(captured) else { return false };
        let settled = SettledHold { captured: Credits::from_atoms(fitting), reason, at: now };
        self.holds[index].settled = Some(settled);
        self.usage.push(Event { kind, line: hold.line, key: hold.key, used: captured, booked_on, at: now });
        if !self.all_fit() {
            self.usage.pop();
            self.holds[index].settled = None;
            return false;
        }
        let rest = atoms(hold.amount) - captured;
        if rest >= 0 {
            self.refund_keys(hold.key, rest, booked_on);
        } else {
            self.exceed_keys(hold.key, -rest, booked_on);
        }
        true
    }

    /// Deletes the settled holds that are no longer kept, and returns how many.
    pub(super) fn forget_holds(&mut self, now: Timestamp) -> usize {
        let before = self.holds.len();
        let is_kept = |settled: SettledHold| now < settled.at.saturating_add(Hold::RETENTION);
        self.holds.retain(|hold| hold.settled.is_none_or(is_kept));
        before - self.holds.len()
    }
}
