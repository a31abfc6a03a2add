//! Contracts for alerts: one event when a balance is low or exhausted, until credits are added.

use std::sync::Arc;

use metering_core::access::AccountId;
use metering_core::charging::{HoldAction, Posting};
use metering_core::events::EventKind::{BalanceExhausted, BalanceLow, HoldExpired};
use metering_core::money::{AlertLevel, BalanceAlert};
use metering_core::store::{EventStore, Store};
use metering_core::{Decision, Refusal};

use super::event_scene::{charge_each, exhausted, later_events, low, newest, raised, reported, set_threshold, watched};
use super::hold_scene::{FALLBACK, act, capture, capture_in_full, hold, later, open};
use super::races::all_at_once;
use super::scene::{
    NOON, Verified, accepted, account, adjustment, atoms, balance, charge, commit, commit_refund, customer, decide,
    new_id, post, refused,
};

/// A threshold is stored with its account, and removed again. A revoked account has one too.
pub async fn a_threshold_is_stored_with_its_account(store: Arc<dyn EventStore>) {
    let (customer, other) = (customer(&*store, 5).await, customer(&*store, 5).await);
    assert_eq!(account(&*store, &customer.id).await.alert, BalanceAlert::default());
    for threshold in [Some(1), Some(i64::MAX), None, Some(0), Some(7)] {
        let threshold = threshold.map(atoms);
        let after = store.set_balance_alert(&customer.id, threshold).await.unwrap();
        let alert = BalanceAlert { threshold, raised: AlertLevel::None };
        assert_eq!(after.as_ref().map(|after| after.alert), Some(alert));
        assert_eq!(after, store.account(&customer.id).await.unwrap());
    }
    assert_eq!(account(&*store, &other.id).await.alert, BalanceAlert::default());
    assert_eq!(store.set_balance_alert(&new_id(), Some(atoms(1))).await.unwrap(), None);
    store.revoke_account(&customer.id, NOON).await.unwrap();
    set_threshold(&*store, &customer.id, 9).await;
    assert_eq!(account(&*store, &customer.id).await.alert.threshold, Some(atoms(9)));
    assert_eq!(reported(&*store, &customer.id).await, []);
}

/// A balance below its threshold raises one event, and another one when it is exhausted. Refunds make no difference.
pub async fn a_low_balance_is_told_once(store: Verified<dyn EventStore>) {
    let customer = watched(&*store, 100, 50).await;
    charge_each(&*store, &customer, &[40, 10]).await;
    assert_eq!(reported(&*store, &customer.id).await, [], "the balance is at the threshold, not below");
    let receipt = accepted(&*store, charge(customer.key, 1), NOON).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow]);
    assert_eq!(newest(&*store, &customer.id).await, low(&customer.id, 49, 50));
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::Low);
    commit_refund(&*store, receipt.into_refund().unwrap(), NOON).await;
    charge_each(&*store, &customer, &[1, 20, 28]).await;
    assert_eq!((reported(&*store, &customer.id).await.len(), balance(&*store, &customer.id).await), (1, 1));
    let receipt = accepted(&*store, charge(customer.key, 5), later(3)).await;
    let after = later_events(&*store, &customer.id).await.pop().unwrap();
    assert_eq!((after.kind, after.created_at), (BalanceExhausted, later(3)));
    assert_eq!(after.data, exhausted(&customer.id, -4, None));
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::Exhausted);
    commit_refund(&*store, receipt.into_refund().unwrap(), NOON).await;
    charge_each(&*store, &customer, &[1, 1]).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow, BalanceExhausted]);
}

/// In one batch, each level raises one event, with the balance at that moment, in order.
pub async fn a_batch_tells_each_level_once(store: Arc<dyn EventStore>) {
    let (first, second) = (watched(&*store, 100, 50).await, watched(&*store, 100, 95).await);
    let charges = (0..8).flat_map(|_| [charge(first.key, 20), charge(second.key, 3)]);
    let decisions = commit(&*store, charges.collect(), NOON).await;
    let refused = decisions.iter().filter(|decision| matches!(decision, Decision::Refused(_))).count();
    assert_eq!(refused, 3, "the first has credits for five requests");
    let data =
        |events: Vec<metering_core::events::Event>| events.into_iter().map(|event| event.data).collect::<Vec<_>>();
    let of_first = data(later_events(&*store, &first.id).await);
    assert_eq!(of_first, [low(&first.id, 40, 50), exhausted(&first.id, 0, None)]);
    assert_eq!(data(later_events(&*store, &second.id).await), [low(&second.id, 94, 95)]);
    let levels = (raised(&*store, &first.id).await, raised(&*store, &second.id).await);
    assert_eq!(levels, (AlertLevel::Exhausted, AlertLevel::Low));
    let third = watched(&*store, 100, 50).await;
    commit(&*store, vec![charge(third.key, 100)], NOON).await;
    assert_eq!(reported(&*store, &third.id).await, [BalanceLow, BalanceExhausted], "one request reaches both levels");
}

/// Without a threshold, only an exhausted balance raises an event.
pub async fn without_a_threshold_only_exhaustion_is_told(store: Arc<dyn EventStore>) {
    let customer = customer(&*store, 100).await;
    charge_each(&*store, &customer, &[50, 49]).await;
    assert_eq!(reported(&*store, &customer.id).await, []);
    charge_each(&*store, &customer, &[1, 1, 1]).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceExhausted]);
}

/// Requests that the balance does not cover raise one event. They cost nothing, and change nothing else.
pub async fn a_refusal_for_lack_of_credits_is_told_once(store: Verified<dyn EventStore>) {
    let customer = watched(&*store, 100, 20).await;
    let before = account(&*store, &customer.id).await;
    let refusal = refused(&*store, hold(customer.key, 101), later(1)).await;
    assert!(matches!(refusal, Refusal::InsufficientCredits { .. }), "{refusal:?}");
    let events = later_events(&*store, &customer.id).await;
    assert_eq!(events.len(), 1, "the balance is not below the threshold: {events:?}");
    assert_eq!((events[0].kind, events[0].created_at), (BalanceExhausted, later(1)));
    assert_eq!(events[0].data, exhausted(&customer.id, 100, Some(atoms(101))));
    for amount in [101, 150] {
        refused(&*store, hold(customer.key, amount), NOON).await;
    }
    commit(&*store, vec![hold(customer.key, 200), hold(customer.key, 300)], NOON).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceExhausted]);
    let after = account(&*store, &customer.id).await;
    assert_eq!((after.totals, raised(&*store, &customer.id).await), (before.totals, AlertLevel::Short));
    assert_eq!(store.activity(&customer.id, 10).await.unwrap().len(), 1, "nothing but the first credits");
    accepted(&*store, charge(customer.key, 81), NOON).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceExhausted, BalanceLow], "the refusal does not hide this");
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::LowAndShort);
    refused(&*store, hold(customer.key, 101), NOON).await;
    accepted(&*store, charge(customer.key, 19), NOON).await;
    let kinds = [BalanceExhausted, BalanceLow, BalanceExhausted];
    assert_eq!(reported(&*store, &customer.id).await, kinds, "now the balance is zero");
}

/// The first refused request of an account that never had credits raises an event. Other refusals raise none.
pub async fn only_lack_of_credits_exhausts_a_balance(store: Arc<dyn EventStore>) {
    let empty = customer(&*store, 0).await;
    refused(&*store, charge(empty.key, 0), NOON).await;
    assert_eq!(reported(&*store, &empty.id).await, [BalanceExhausted], "even a free request needs a balance");
    assert_eq!(newest(&*store, &empty.id).await, exhausted(&empty.id, 0, Some(atoms(0))));
    let limits = metering_core::RateLimits::per_minute(1);
    let limited = super::scene::customer_with(&*store, 10, limits).await;
    charge_each(&*store, &limited, &[1, 1, 100]).await;
    assert_eq!(reported(&*store, &limited.id).await, [], "refused by the rate limit");
    store.revoke_account(&limited.id, NOON).await.unwrap();
    refused(&*store, charge(limited.key, 1), NOON).await;
    assert_eq!(reported(&*store, &limited.id).await, [], "refused because it is revoked");
}

/// A hold raises nothing, since it may be released. Its capture does, also for what exceeds the hold.
pub async fn holds_and_captures_are_told(store: Verified<dyn EventStore>) {
    let customer = watched(&*store, 100, 50).await;
    let id = open(&*store, customer.key, 60).await;
    act(&*store, &customer.id, id, HoldAction::Release, NOON).await;
    let ids = [open(&*store, customer.key, 60).await, open(&*store, customer.key, 20).await];
    refused(&*store, hold(customer.key, 30), NOON).await;
    assert_eq!(reported(&*store, &customer.id).await, [], "what is held would cover it");
    act(&*store, &customer.id, ids[1], HoldAction::Release, NOON).await;
    act(&*store, &customer.id, ids[0], capture(60), NOON).await;
    assert_eq!(newest(&*store, &customer.id).await, low(&customer.id, 40, 50));
    let id = open(&*store, customer.key, 40).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow]);
    act(&*store, &customer.id, id, capture_in_full(150), NOON).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow, BalanceExhausted]);
    assert_eq!(newest(&*store, &customer.id).await, exhausted(&customer.id, -110, None));
}

/// A settled hold is compared with the threshold at that time; that event comes before `hold.expired`.
pub async fn a_settled_hold_tells_the_new_threshold(store: Arc<dyn EventStore>) {
    let (expiring, captured) = (customer(&*store, 100).await, customer(&*store, 100).await);
    let ids = [open(&*store, expiring.key, 30).await, open(&*store, captured.key, 30).await];
    for customer in [&expiring, &captured] {
        set_threshold(&*store, &customer.id, 99).await;
        assert_eq!(reported(&*store, &customer.id).await, [], "a new threshold alone makes no event");
    }
    act(&*store, &expiring.id, ids[0], HoldAction::Expire, later(60)).await;
    assert_eq!(reported(&*store, &expiring.id).await, [BalanceLow, HoldExpired]);
    let events = later_events(&*store, &expiring.id).await;
    assert_eq!(events[0].data, low(&expiring.id, 100 - FALLBACK, 99));
    act(&*store, &captured.id, ids[1], capture(2), later(60)).await;
    assert_eq!(newest(&*store, &captured.id).await, low(&captured.id, 98, 99));
    assert_eq!(reported(&*store, &captured.id).await, [BalanceLow]);
}

async fn post_atoms(store: &dyn EventStore, id: &AccountId, amount: i64) {
    post(store, id, adjustment(amount), NOON).await;
}

/// Added credits arm the alert again; credits that are taken away raise it as a charge would.
pub async fn entries_raise_and_lower_alerts(store: Verified<dyn EventStore>) {
    let customer = watched(&*store, 100, 50).await;
    post_atoms(&*store, &customer.id, -51).await;
    assert_eq!(newest(&*store, &customer.id).await, low(&customer.id, 49, 50));
    post_atoms(&*store, &customer.id, -49).await;
    assert_eq!(newest(&*store, &customer.id).await, exhausted(&customer.id, 0, None));
    post_atoms(&*store, &customer.id, -1).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow, BalanceExhausted]);
    post_atoms(&*store, &customer.id, 1).await;
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::Exhausted, "the balance is still zero");
    post_atoms(&*store, &customer.id, 10).await;
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::Low);
    charge_each(&*store, &customer, &[1, 10]).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow, BalanceExhausted, BalanceExhausted]);
    post_atoms(&*store, &customer.id, 51).await;
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::None);
    charge_each(&*store, &customer, &[1]).await;
    assert_eq!(reported(&*store, &customer.id).await.last(), Some(&BalanceLow));
    assert_eq!(reported(&*store, &customer.id).await.len(), 4);
}

/// A threshold below the balance lowers the alert; one above it takes effect with the next charge.
pub async fn a_new_threshold_arms_the_alert_again(store: Arc<dyn EventStore>) {
    let customer = watched(&*store, 100, 50).await;
    charge_each(&*store, &customer, &[60]).await;
    set_threshold(&*store, &customer.id, 45).await;
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::Low, "40 is below this threshold too");
    charge_each(&*store, &customer, &[1]).await;
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow]);
    set_threshold(&*store, &customer.id, 30).await;
    assert_eq!(raised(&*store, &customer.id).await, AlertLevel::None);
    set_threshold(&*store, &customer.id, 80).await;
    assert_eq!(
        (raised(&*store, &customer.id).await, reported(&*store, &customer.id).await.len()),
        (AlertLevel::None, 1)
    );
    charge_each(&*store, &customer, &[0]).await;
    assert_eq!(newest(&*store, &customer.id).await, low(&customer.id, 39, 80));
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow, BalanceLow]);
}

/// In a batch with postings of other kinds, only what crosses a level raises an event.
pub async fn alerts_follow_the_order_of_a_batch(store: Arc<dyn EventStore>) {
    let customer = watched(&*store, 100, 50).await;
    let receipt = accepted(&*store, charge(customer.key, 40), NOON).await;
    let refund = Posting::Refund(receipt.into_refund().unwrap());
    let batch = vec![refund, Posting::Charge(charge(customer.key, 50)), Posting::Charge(charge(customer.key, 1))];
    store.commit(batch, NOON).await.unwrap();
    assert_eq!(newest(&*store, &customer.id).await, low(&customer.id, 49, 50));
    assert_eq!(reported(&*store, &customer.id).await, [BalanceLow]);
    let unknown = decide(&*store, charge(super::scene::new_key(), 1), NOON).await;
    assert_eq!(unknown, Decision::Refused(Refusal::UnknownKey));
}

/// Of requests that race, one crosses each level.
pub async fn racing_requests_tell_each_level_once(store: Verified<dyn EventStore>) {
    let customer = watched(&*store, 30, 20).await;
    let charges: Arc<dyn Store> = Arc::clone(&store) as _;
    all_at_once(&charges, vec![charge(customer.key, 1); 64]).await;
    assert_eq!(balance(&*store, &customer.id).await, 0);
    let events = later_events(&*store, &customer.id).await;
    let data: Vec<_> = events.iter().map(|event| event.data.as_str()).collect();
    assert_eq!(data, [low(&customer.id, 19, 20), exhausted(&customer.id, 0, None)]);
}
