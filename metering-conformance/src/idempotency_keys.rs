//! Contracts for idempotency keys: a retried request is charged once, forwarded once at a time, and served once.

use std::sync::Arc;
use std::time::Duration;

use metering_core::charging::{DeliveryTerms, Fingerprint, IdempotencyKey, Outcome, Posting, Repetition};
use metering_core::{Charge, Receipt, Refusal, RequestId};

use metering_core::access::{KeyHash, KeyTerms};
use metering_core::clock::Timestamp;
use metering_core::store::Store;

use super::key_scene::{budget, caller, issue, spent};
use super::scene::{
    ALWAYS, BASE, NOON, Verified, accepted, all_daily_totals, balance, charge, charge_named, commit, commit_refund,
    customer, new_key, refused, report,
};

pub(super) const LEASE: Duration = Duration::from_secs(40);

fn later(seconds: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(seconds))
}

/// A charge with an idempotency key, for request number `request`.
pub(super) fn keyed(key: KeyHash, price: i64, name: &str, request: u8) -> Charge {
    let name = IdempotencyKey::parse(name).unwrap();
    let terms = DeliveryTerms { fingerprint: Fingerprint::from_bytes([request; 16]), lease: LEASE };
    charge(key, price).with_request_id(RequestId::of_idempotency_key(&name)).with_delivery(terms)
}

pub(super) async fn repeated(store: &dyn Store, charge: Charge, now: Timestamp) -> Repetition {
    match refused(store, charge, now).await {
        Refusal::Repeated(repetition) => repetition,
        other => panic!("refused for another reason: {other:?}"),
    }
}

pub(super) async fn settle(store: &dyn Store, receipt: &Receipt, now: Timestamp) {
    let outcomes = store.commit(vec![Posting::Settle(receipt.settlement().unwrap())], now).await.unwrap();
    assert_eq!(outcomes, [Outcome::Settled]);
}

pub(super) fn number(receipt: &Receipt) -> u32 {
    receipt.delivery.as_ref().unwrap().number
}

/// During an attempt's lease a retry is refused; after it, a retry is accepted and not charged.
pub async fn key_can_be_retried_after_its_lease(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let first = accepted(&*store, keyed(customer.key, BASE, "k", 1), NOON).await;
    assert_eq!((first.repeated, number(&first)), (false, 1));
    let in_progress = |seconds| Repetition::InProgress { retry_after_seconds: seconds };
    assert_eq!(repeated(&*store, keyed(customer.key, BASE, "k", 1), later(1)).await, in_progress(39));
    accepted(&*store, charge(customer.key, 3 * BASE), later(2)).await;
    // A retry with another price is still a retry of the charged request.
    let second = accepted(&*store, keyed(customer.key, 5 * BASE, "k", 1), later(40)).await;
    assert_eq!((second.repeated, number(&second), second.charged.atoms()), (true, 2, BASE));
    assert_eq!(second.balance.atoms(), 6 * BASE, "the current balance");
    assert_eq!(second.rate.minute.count, 2, "a retry is not counted");
    assert_eq!(repeated(&*store, keyed(customer.key, BASE, "k", 1), later(41)).await, in_progress(39));
    assert_eq!(balance(&*store, &customer.id).await, 6 * BASE);
    assert_eq!(report(&*store, &customer.id, ALWAYS).await.by_day[0].usage_events, 2);
}

/// One charge pays for at most three attempts.
pub async fn attempts_are_limited(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    for (time, expected) in [(0, 1), (40, 2), (80, 3)] {
        let receipt = accepted(&*store, keyed(customer.key, BASE, "k", 1), later(time)).await;
        assert_eq!(number(&receipt), expected);
    }
    for time in [120, 10_000, 24 * 60 * 60 - 1] {
        assert_eq!(repeated(&*store, keyed(customer.key, BASE, "k", 1), later(time)).await, Repetition::UsedUp);
    }
    assert_eq!(balance(&*store, &customer.id).await, 9 * BASE);
}

/// Once a response has been passed on, the key is used up. It is never valid for another request.
pub async fn a_delivered_key_is_used_up(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let first = accepted(&*store, keyed(customer.key, BASE, "k", 1), NOON).await;
    assert_eq!(repeated(&*store, keyed(customer.key, BASE, "k", 2), NOON).await, Repetition::OtherRequest);
    settle(&*store, &first, later(1)).await;
    for time in [1, 40, 10_000] {
        assert_eq!(repeated(&*store, keyed(customer.key, BASE, "k", 1), later(time)).await, Repetition::UsedUp);
        assert_eq!(repeated(&*store, keyed(customer.key, BASE, "k", 2), later(time)).await, Repetition::OtherRequest);
    }
    // Two attempts may both settle; the key stays used up.
    settle(&*store, &first, later(50)).await;
    assert_eq!(repeated(&*store, keyed(customer.key, BASE, "k", 1), later(60)).await, Repetition::UsedUp);
    assert_eq!(balance(&*store, &customer.id).await, 9 * BASE);
    // Settling an unknown account or key does nothing.
    let mut settlement = first.settlement().unwrap();
    settlement.account = super::scene::new_id();
    assert_eq!(store.commit(vec![Posting::Settle(settlement)], NOON).await.unwrap(), [Outcome::Settled]);
}

/// A refund forgets the key, so a retry is charged, immediately.
pub async fn refunded_key_is_charged_again(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    for price in [BASE, 0] {
        let first = accepted(&*store, keyed(customer.key, price, "k", 1), NOON).await;
        let refund = first.into_refund().expect("even a free charge has a refund that forgets its key");
        assert_eq!(commit_refund(&*store, refund, later(1)).await.map(|left| left.atoms()), Some(10 * BASE));
        // Even another request may use the key, and a node with a lagging clock does not find the old one.
        let again = accepted(&*store, keyed(customer.key, 2 * BASE, "k", 2), NOON).await;
        assert_eq!((again.repeated, number(&again), again.balance.atoms()), (false, 1, 8 * BASE));
        commit_refund(&*store, again.into_refund().unwrap(), later(1)).await.unwrap();
    }
    assert_eq!(balance(&*store, &customer.id).await, 10 * BASE);
}

/// A later attempt takes over the first one's charge: only the last attempt refunds it, on the day of the charge.
pub async fn only_the_last_attempt_refunds_the_charge(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let evening = NOON.saturating_add(Duration::from_secs(12 * 60 * 60 - 5));
    let first = accepted(&*store, keyed(customer.key, BASE, "k", 1), evening).await;
    let next_day = evening.saturating_add(LEASE);
    assert_ne!(evening.day(), next_day.day());
    let second = accepted(&*store, keyed(customer.key, BASE, "k", 1), next_day).await;
    assert_eq!((number(&second), second.day), (2, evening.day()));
    let late = commit_refund(&*store, first.into_refund().unwrap(), next_day).await;
    assert_eq!(late.map(|left| left.atoms()), Some(9 * BASE), "the second attempt has taken over the charge");
    let paid = commit_refund(&*store, second.into_refund().unwrap(), next_day).await;
    assert_eq!(paid.map(|left| left.atoms()), Some(10 * BASE));
    let totals = all_daily_totals(&*store).await;
    assert_eq!(
        totals.iter().map(|total| (total.day, total.credits_used.atoms())).collect::<Vec<_>>(),
        [(evening.day(), 0)]
    );
}

/// A charge is refunded once, no matter which of its attempts fails first. A late one does not refund another charge
/// that the key is used for by then.
pub async fn a_charge_is_refunded_once(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let first = accepted(&*store, keyed(customer.key, BASE, "k", 1), NOON).await;
    let second = accepted(&*store, keyed(customer.key, BASE, "k", 1), later(40)).await;
    let (first, second) = (first.into_refund().unwrap(), second.into_refund().unwrap());
    let repeated = second.clone();
    assert_eq!(commit_refund(&*store, second, later(41)).await.map(|left| left.atoms()), Some(10 * BASE));
    let again = commit_refund(&*store, repeated, later(41)).await;
    assert_eq!(again.map(|left| left.atoms()), Some(10 * BASE), "the same refund twice");
    let late = commit_refund(&*store, first.clone(), later(41)).await;
    assert_eq!(late.map(|left| left.atoms()), Some(10 * BASE), "the second attempt gave it back");
    accepted(&*store, keyed(customer.key, 3 * BASE, "k", 1), later(42)).await;
    let late = commit_refund(&*store, first, later(43)).await;
    assert_eq!(late.map(|left| left.atoms()), Some(7 * BASE), "the key is in use for another charge");
}

/// The same rules apply to keys within one batch and across batches.
pub async fn batch_decides_keys_in_order(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let one = || Posting::Charge(keyed(customer.key, BASE, "k", 1));
    let outcomes = store.commit(vec![one(), one()], NOON).await.unwrap();
    let refusal = Refusal::Repeated(Repetition::InProgress { retry_after_seconds: 40 });
    assert_eq!(outcomes[1], Outcome::Decided(metering_core::Decision::Refused(refusal)));
    let Outcome::Decided(metering_core::Decision::Accepted(first)) = outcomes.into_iter().next().unwrap() else {
        panic!("the first charge is accepted");
    };
    let settlement = Posting::Settle(first.settlement().unwrap());
    let outcomes = store.commit(vec![settlement, one()], later(50)).await.unwrap();
    assert!(matches!(
        outcomes[1],
        Outcome::Decided(metering_core::Decision::Refused(Refusal::Repeated(Repetition::UsedUp)))
    ));
    let other = accepted(&*store, keyed(customer.key, BASE, "other", 1), NOON).await;
    let refund = Posting::Refund(other.into_refund().unwrap());
    let charge = Posting::Charge(keyed(customer.key, 2 * BASE, "other", 1));
    let outcomes = store.commit(vec![refund, charge], later(1)).await.unwrap();
    assert!(matches!(&outcomes[1], Outcome::Decided(metering_core::Decision::Accepted(receipt)) if !receipt.repeated));
    assert_eq!(balance(&*store, &customer.id).await, 7 * BASE);
}

/// A client's idempotency key never matches a deduction's request id, so a cheap request cannot pay for another.
pub async fn keys_and_request_ids_are_separate(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    accepted(&*store, keyed(customer.key, BASE, "same", 1), NOON).await;
    assert!(!accepted(&*store, charge_named(customer.key, 2 * BASE, "same"), NOON).await.repeated);
    accepted(&*store, charge_named(customer.key, BASE, "other"), NOON).await;
    assert!(!accepted(&*store, keyed(customer.key, 2 * BASE, "other", 1), NOON).await.repeated);
    assert_eq!(balance(&*store, &customer.id).await, 4 * BASE);
}

/// A key belongs to the account, with any of its API keys, and to no other account. A dead API key reveals nothing.
pub async fn keys_are_separate_per_account(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 10 * BASE).await, customer(&*store, 10 * BASE).await);
    let decisions = commit(&*store, vec![keyed(first.key, BASE, "k", 1), keyed(second.key, BASE, "k", 1)], NOON).await;
    assert!(decisions.iter().all(|decision| matches!(decision, metering_core::Decision::Accepted(_))));
    let new = new_key();
    store.replace_key(&first.id, new, NOON).await.unwrap();
    assert!(matches!(repeated(&*store, keyed(new, BASE, "k", 1), NOON).await, Repetition::InProgress { .. }));
    assert_eq!(refused(&*store, keyed(first.key, BASE, "k", 1), NOON).await, Refusal::UnknownKey);
}

/// Each API key has its own idempotency keys: no key gets, repeats or blocks what another one paid for, and a refund
/// goes to the key that paid. A rotation changes nothing about that.
pub async fn keys_are_separate_per_api_key(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let terms = KeyTerms { budget: budget(5 * BASE, None), ..caller() };
    let (one, two) =
        (issue(&*store, &customer.id, None, terms.clone()).await, issue(&*store, &customer.id, None, terms).await);
    let paid = accepted(&*store, keyed(one.secret, 2 * BASE, "k", 1), NOON).await;
    let other = accepted(&*store, keyed(two.secret, 3 * BASE, "k", 2), NOON).await;
    accepted(&*store, keyed(customer.key, BASE, "k", 3), NOON).await;
    assert_eq!((paid.key, paid.repeated, other.key, other.repeated), (one.number, false, two.number, false));
    assert_eq!(balance(&*store, &customer.id).await, 4 * BASE);
    let secret = new_key();
    store.replace_live_key(&one.secret, secret, NOON).await.unwrap().expect("the secret works");
    assert!(matches!(repeated(&*store, keyed(secret, BASE, "k", 1), NOON).await, Repetition::InProgress { .. }));
    let again = accepted(&*store, keyed(secret, 2 * BASE, "k", 1), later(40)).await;
    assert_eq!((again.key, again.repeated, again.charged.atoms()), (one.number, true, 2 * BASE));
    settle(&*store, &other, later(41)).await;
    assert_eq!(repeated(&*store, keyed(two.secret, BASE, "k", 2), later(42)).await, Repetition::UsedUp);
    commit_refund(&*store, again.into_refund().unwrap(), later(42)).await.unwrap();
    assert_eq!(spent(&*store, &customer.id, &one.id).await, 0);
    assert_eq!(spent(&*store, &customer.id, &two.id).await, 3 * BASE);
}

/// A key is stored for a day from its charge, regardless of retries, and is new after that.
pub async fn expired_key_can_be_used_again(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    accepted(&*store, keyed(customer.key, BASE, "k", 1), NOON).await;
    let second = accepted(&*store, keyed(customer.key, BASE, "k", 1), later(100)).await;
    settle(&*store, &second, later(101)).await;
    let end = NOON.saturating_add(RequestId::RETENTION);
    let last = end.saturating_sub(Duration::from_millis(1));
    assert_eq!(store.forget_expired(last).await.unwrap(), 0);
    assert_eq!(repeated(&*store, keyed(customer.key, BASE, "k", 1), last).await, Repetition::UsedUp);
    assert!(!accepted(&*store, keyed(customer.key, BASE, "k", 2), end).await.repeated);
    assert_eq!(balance(&*store, &customer.id).await, 8 * BASE);
}
