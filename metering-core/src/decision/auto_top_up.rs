//! Saves cards, and decides when a saved card is charged.

use crate::access::account::Account;
use crate::clock::Timestamp;
use crate::events::{EventData, NewEvent};
use crate::payments::auto_top_up::{AutoTopUp, TopUpCharge, TopUpChargeId, TopUpChargeState, TopUpRule, TopUpStop};
use crate::store::{AutoTopUpChange, AutoTopUpSet};

use super::Decided;

/// The rows read before a card is charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopUpFacts {
    /// The account.
    pub account: Account,
    /// Its card and rule.
    pub settings: AutoTopUp,
    /// Its charges of this month that are not of state [`TopUpChargeState::Failed`], and those of earlier months that are
    /// open.
    pub charges: Vec<TopUpCharge>,
}

/// Decides [`PaymentStore::set_auto_top_up`](crate::PaymentStore::set_auto_top_up).
///
/// A new rule restarts them after a stop. A new card does not: the owner turns top-ups on again.
#[must_use]
pub fn set_auto_top_up(current: AutoTopUp, change: AutoTopUpChange) -> Decided<AutoTopUp, AutoTopUpSet> {
    let changed = match change {
        AutoTopUpChange::Card(Some(card)) => AutoTopUp { card: Some(card), ..current },
        AutoTopUpChange::Card(None) => AutoTopUp { card: None, rule: None, stopped: None, ..current },
        AutoTopUpChange::Rule(Some(_)) if current.card.is_none() => return Decided::Refused(AutoTopUpSet::NoCard),
        AutoTopUpChange::Rule(rule) => AutoTopUp { rule, stopped: None, ..current },
    };
    Decided::Accepted(changed)
}

/// Whether the balance of an account is so low that its card is charged. [`begin_top_up`] has the other conditions.
#[must_use]
pub fn is_top_up_due(account: &Account, settings: &AutoTopUp) -> bool {
    let is_low = |threshold| account.totals.unspent() < threshold;
    let rule = settings.rule.as_ref().filter(|_| settings.card.is_some() && settings.stopped.is_none());
    account.revoked_at.is_none() && rule.is_some_and(|rule| is_low(rule.threshold))
}

/// Decides [`PaymentStore::begin_top_up`](crate::PaymentStore::begin_top_up): the charge to make, if it is due, none is open,
/// and it is within the month's limit.
#[must_use]
pub fn begin_top_up(id: TopUpChargeId, facts: TopUpFacts, now: Timestamp) -> Option<TopUpCharge> {
    let TopUpFacts { account, settings, charges } = facts;
    if !is_top_up_due(&account, &settings) {
        return None;
    }
    let (rule, card) = (settings.rule?, settings.card?);
    has_room(&rule, &charges).then_some(TopUpCharge {
        id,
        account: account.id,
        card,
        plan_id: rule.plan_id,
        credits: rule.credits,
        amount: rule.amount,
        currency: rule.currency,
        started_at: now,
        state: TopUpChargeState::Open,
        payment: None,
    })
}

/// Whether another charge may be made beside those of this month: none is open, and the limit covers it.
#[must_use]
pub fn has_room(rule: &TopUpRule, charges: &[TopUpCharge]) -> bool {
    let is_open = charges.iter().any(|charge| charge.state == TopUpChargeState::Open);
    let of_currency = charges.iter().filter(|charge| charge.currency == rule.currency);
    let charged = of_currency.fold(0_u64, |sum, charge| sum.saturating_add(charge.amount));
    !is_open && charged.checked_add(rule.amount).is_some_and(|sum| sum <= rule.monthly_limit)
}

/// Whether an open charge may be sent to the processor: the agreement still applies to this card, and the account can
/// be credited. Otherwise it may have been sent before, but is not sent again.
#[must_use]
pub fn may_send_top_up(charge: &TopUpCharge, account: Option<&Account>, settings: Option<&AutoTopUp>) -> bool {
    let sold = (&charge.plan_id, charge.amount, charge.currency);
    let is_agreed = |settings: &AutoTopUp| {
        let rule = settings.rule.as_ref().filter(|_| settings.stopped.is_none());
        let is_sold = rule.is_some_and(|rule| (&rule.plan_id, rule.amount, rule.currency) == sold);
        is_sold && settings.card.as_ref() == Some(&charge.card)
    };
    account.is_some_and(|account| account.revoked_at.is_none()) && settings.is_some_and(is_agreed)
}

/// Stops automatic top-ups: the settings to write, and the owner's notification. `None` if they are off, or stopped
/// before.
#[must_use]
pub fn stop_top_ups(settings: AutoTopUp, reason: TopUpStop, now: Timestamp) -> Option<(AutoTopUp, NewEvent)> {
    let rule = settings.rule.as_ref().filter(|_| settings.stopped.is_none())?;
    let data = EventData::TopUpStopped { reason, plan_id: rule.plan_id.clone() };
    let event = NewEvent { account: Some(settings.account.clone()), data, created_at: now };
    Some((AutoTopUp { stopped: Some(reason), ..settings }, event))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{NOW, account, revoked};
    use super::*;
    use crate::money::credits::Credits;
    use crate::payments::auto_top_up::SavedCard;

    /// The account has a balance of two atoms.
    fn rule() -> TopUpRule {
        TopUpRule {
            plan_id: "starter".to_owned(),
            credits: Credits::from_atoms(100),
            amount: 1_000,
            currency: "EUR".parse().unwrap(),
            threshold: Credits::from_atoms(3),
            monthly_limit: 2_500,
        }
    }

    fn card() -> SavedCard {
        let [customer, method, brand, last4] = ["cus_1", "pm_1", "visa", "4242"].map(str::to_owned);
        SavedCard { customer, method, brand, last4 }
    }

    fn on() -> AutoTopUp {
        AutoTopUp { account: account().id, card: Some(card()), rule: Some(rule()), stopped: None }
    }

    fn facts(settings: AutoTopUp) -> TopUpFacts {
        TopUpFacts { account: account(), settings, charges: Vec::new() }
    }

    fn id() -> TopUpChargeId {
        TopUpChargeId::from_bytes([7; 16])
    }

    fn charge(state: TopUpChargeState) -> TopUpCharge {
        let charge = begin_top_up(id(), facts(on()), NOW).expect("it is due");
        TopUpCharge { state, ..charge }
    }

    #[test]
    fn a_card_is_charged_only_when_all_agree() {
        use TopUpChargeState::{Open, Paid};
        let of = |change: fn(&mut TopUpRule)| {
            let mut rule = rule();
            change(&mut rule);
            facts(AutoTopUp { rule: Some(rule), ..on() })
        };
        let after = |charges: &[TopUpCharge]| TopUpFacts { charges: charges.to_vec(), ..facts(on()) };
        let dollars = TopUpCharge { currency: "USD".parse().unwrap(), ..charge(Paid) };
        // facts, whether the card is charged
        let table = [
            (facts(on()), true),
            (TopUpFacts { account: revoked(), ..facts(on()) }, false),
            (facts(AutoTopUp { card: None, ..on() }), false),
            (facts(AutoTopUp { rule: None, ..on() }), false),
            (facts(AutoTopUp { stopped: Some(TopUpStop::Declined), ..on() }), false),
            (of(|rule| rule.threshold = Credits::from_atoms(2)), false),
            (of(|rule| rule.monthly_limit = 1_000), true),
            (of(|rule| rule.monthly_limit = 999), false),
            (after(&[charge(Open)]), false),
            (after(&[charge(Paid)]), true),
            (after(&[charge(Paid), charge(Paid)]), false),
            (after(&[charge(Paid), dollars]), true),
        ];
        for (facts, is_charged) in table {
            assert_eq!(begin_top_up(id(), facts.clone(), NOW).is_some(), is_charged, "{facts:?}");
        }
    }

    #[test]
    fn a_charge_is_not_sent_after_its_owner_has_withdrawn() {
        let charge = charge(TopUpChargeState::Open);
        let other = SavedCard { last4: "0005".to_owned(), ..card() };
        // account, settings, whether it is sent
        let table = [
            (Some(account()), Some(on()), true),
            (Some(account()), Some(AutoTopUp { rule: None, ..on() }), false),
            (Some(account()), Some(AutoTopUp { rule: Some(TopUpRule { amount: 1, ..rule() }), ..on() }), false),
            (Some(account()), Some(AutoTopUp { stopped: Some(TopUpStop::Reversed), ..on() }), false),
            (Some(account()), Some(AutoTopUp { card: Some(other), ..on() }), false),
            (Some(account()), Some(AutoTopUp::none(account().id)), false),
            (Some(account()), None, false),
            (Some(revoked()), Some(on()), false),
            (None, Some(on()), false),
        ];
        for (account, settings, is_sent) in table {
            let may_send = may_send_top_up(&charge, account.as_ref(), settings.as_ref());
            assert_eq!(may_send, is_sent, "{account:?} {settings:?}");
        }
    }

    #[test]
    fn credits_that_are_held_may_return() {
        let mut held = facts(on());
        held.account.totals.held = Credits::from_atoms(1);
        assert_eq!(begin_top_up(id(), held, NOW), None);
    }

    #[test]
    fn only_a_new_rule_goes_on_after_a_stop() {
        let stopped = AutoTopUp { stopped: Some(TopUpStop::Declined), ..on() };
        let nothing = AutoTopUp { card: None, rule: None, stopped: None, ..on() };
        // before, change, after
        let table = [
            (stopped.clone(), AutoTopUpChange::Card(Some(card())), Ok(stopped.clone())),
            (stopped.clone(), AutoTopUpChange::Rule(Some(rule())), Ok(on())),
            (stopped.clone(), AutoTopUpChange::Rule(None), Ok(AutoTopUp { rule: None, ..on() })),
            (stopped, AutoTopUpChange::Card(None), Ok(nothing.clone())),
            (nothing.clone(), AutoTopUpChange::Rule(None), Ok(nothing.clone())),
            (nothing, AutoTopUpChange::Rule(Some(rule())), Err(AutoTopUpSet::NoCard)),
        ];
        for (before, change, after) in table {
            let decided = match set_auto_top_up(before.clone(), change.clone()) {
                Decided::Accepted(changed) => Ok(changed),
                Decided::Refused(refusal) => Err(refusal),
            };
            assert_eq!(decided, after, "{before:?} {change:?}");
        }
    }

    #[test]
    fn a_stop_is_told_once() {
        let (stopped, event) = stop_top_ups(on(), TopUpStop::Declined, NOW).expect("they are on");
        assert_eq!(stopped.stopped, Some(TopUpStop::Declined));
        assert!(event.json().contains(r#""reason":"declined","plan_id":"starter""#), "{}", event.json());
        assert_eq!(stop_top_ups(stopped, TopUpStop::Reversed, NOW), None);
        assert_eq!(stop_top_ups(AutoTopUp { rule: None, ..on() }, TopUpStop::Reversed, NOW), None);
    }
}
