//! Contracts for request ids: a retry gets the first result and is charged once.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::RateLimits;
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::store::Store;
use metering_core::{Decision, Receipt, Refusal, RequestId};

use super::key_scene::{caller, issue};
use super::scene::{
    ALWAYS, BASE, NOON, Verified, accepted, adjustment, atoms, balance, charge, charge_named, commit, commit_refund,
    customer, customer_with, new_key, post, refused, report,
};

const RETENTION: Duration = RequestId::RETENTION;

fn end_of_memory(first: Timestamp) -> Timestamp {
    first.saturating_add(RETENTION)
}

fn summary(receipt: &Receipt) -> (bool, i64, i64) {
    (receipt.repeated, receipt.charged.atoms(), receipt.balance.atoms())
}

/// A retry in a later batch gets the first result, no matter what happened since.
pub async fn retry_returns_the_first_result(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let first = accepted(&*store, charge_named(customer.key, 2 * BASE, "r1"), NOON).await;
    assert_eq!(summary(&first), (false, 2 * BASE, 8 * BASE));
    accepted(&*store, charge(customer.key, 3 * BASE), NOON).await;
    // The retry gets the first result even if it has another price.
    for price in [2 * BASE, 5 * BASE, 0] {
        let retry = accepted(&*store, charge_named(customer.key, price, "r1"), NOON).await;
        assert_eq!(summary(&retry), (true, 2 * BASE, 8 * BASE));
        assert_eq!(retry.rate.minute.count, 2, "a retry is not counted");
        assert_eq!(retry.into_refund(), None, "a retry that was not charged has no refund");
    }
    assert_eq!(balance(&*store, &customer.id).await, 5 * BASE);
    assert_eq!(report(&*store, &customer.id, ALWAYS).await.by_day[0].usage_events, 2);
}

/// A retry in the same batch as the first request is a retry too.
pub async fn a_retry_in_the_same_batch_is_not_charged(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let names = ["r1", "r2", "r1", "r1", "r2"];
    let decisions = commit(&*store, names.map(|name| charge_named(customer.key, BASE, name)).to_vec(), NOON).await;
    let results = decisions.iter().map(|decision| match decision {
        Decision::Accepted(receipt) => summary(receipt),
        Decision::Refused(refusal) => panic!("{refusal:?}"),
    });
    let (first, second) = (9 * BASE, 8 * BASE);
    assert!(results.eq([
        (false, BASE, first),
        (false, BASE, second),
        (true, BASE, first),
        (true, BASE, first),
        (true, BASE, second)
    ]));
    assert_eq!(balance(&*store, &customer.id).await, 8 * BASE);
}

/// A retry gets the first result even if a rate limit is reached or the balance is empty.
pub async fn retry_needs_no_credits_and_no_rate_limit(store: Arc<dyn Store>) {
    let limits = RateLimits::per_minute(1);
    let customer = customer_with(&*store, BASE, limits).await;
    accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
    let retry = accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
    assert_eq!(summary(&retry), (true, BASE, 0));
    let refusal = refused(&*store, charge_named(customer.key, BASE, "r2"), NOON).await;
    assert!(matches!(refusal, Refusal::RateLimited { .. }), "{refusal:?}");
}

/// Two keys of an account may use the same id, and each is charged. A rotation changes nothing about that.
pub async fn request_ids_are_of_a_key(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let (one, two) =
        (issue(&*store, &customer.id, None, caller()).await, issue(&*store, &customer.id, None, caller()).await);
    let batch = [customer.key, one.secret, two.secret].map(|key| charge_named(key, BASE, "r1"));
    for decision in commit(&*store, batch.to_vec(), NOON).await {
        let Decision::Accepted(receipt) = decision else { panic!("{decision:?}") };
        assert!(!receipt.repeated, "{receipt:?}");
    }
    assert_eq!(balance(&*store, &customer.id).await, 7 * BASE);
    let secret = new_key();
    store.replace_live_key(&one.secret, secret, NOON).await.unwrap().expect("the secret works");
    let first_balances = [(customer.key, 9 * BASE), (secret, 8 * BASE), (two.secret, 7 * BASE)];
    for (key, first_balance) in first_balances {
        let retry = accepted(&*store, charge_named(key, 2 * BASE, "r1"), NOON).await;
        assert_eq!(summary(&retry), (true, BASE, first_balance));
    }
    assert_eq!(store.forget_expired(end_of_memory(NOON)).await.unwrap(), 3);
}

/// A refused request is not remembered: its retry is charged when it is accepted.
pub async fn refusals_are_not_remembered(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    refused(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
    post(&*store, &customer.id, adjustment(5 * BASE), NOON).await;
    assert_eq!(
        summary(&accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await),
        (false, BASE, 4 * BASE)
    );
    assert_eq!(summary(&accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await), (true, BASE, 4 * BASE));
}

/// A free request is remembered like any other.
pub async fn a_free_request_is_remembered(store: Arc<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    accepted(&*store, charge_named(customer.key, 0, "r1"), NOON).await;
    let retry = accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
    assert_eq!(summary(&retry), (true, 0, BASE));
    assert_eq!(retry.charged, Credits::ZERO);
}

/// A refunded request is still remembered: its retry is not charged again.
pub async fn a_refunded_request_is_still_remembered(store: Arc<dyn Store>) {
    let customer = customer(&*store, 5 * BASE).await;
    let receipt = accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
    commit_refund(&*store, receipt.into_refund().expect("there is a charge to refund"), NOON)
        .await
        .expect("the refund succeeds");
    assert_eq!(summary(&accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await), (true, BASE, 4 * BASE));
    assert_eq!(balance(&*store, &customer.id).await, 5 * BASE);
}

/// An id is remembered until its expiry, to the millisecond, whether or not expired ids are deleted in between.
pub async fn expired_request_id_can_be_used_again(store: Arc<dyn Store>) {
    for forget in [false, true] {
        let customer = customer(&*store, 10 * BASE).await;
        accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
        let last = end_of_memory(NOON).saturating_sub(Duration::from_millis(1));
        if forget {
            store.forget_expired(last).await.unwrap();
        }
        assert!(accepted(&*store, charge_named(customer.key, BASE, "r1"), last).await.repeated);
        let end = end_of_memory(NOON);
        if forget {
            store.forget_expired(end).await.unwrap();
        }
        let again = accepted(&*store, charge_named(customer.key, 2 * BASE, "r1"), end).await;
        assert_eq!(summary(&again), (false, 2 * BASE, 7 * BASE), "forget: {forget}");
        // From then on, the new request is remembered.
        let retry = accepted(&*store, charge_named(customer.key, BASE, "r1"), end).await;
        assert_eq!(summary(&retry), (true, 2 * BASE, 7 * BASE));
        store.forget_expired(end).await.unwrap();
        assert!(accepted(&*store, charge_named(customer.key, BASE, "r1"), end).await.repeated, "not expired yet");
    }
}

/// A node with a lagging clock finds results written by a node whose clock is ahead.
pub async fn lagging_clock_finds_the_stored_result(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
    let earlier = NOON.saturating_sub(Duration::from_secs(5));
    assert!(accepted(&*store, charge_named(customer.key, BASE, "r1"), earlier).await.repeated);
}

/// Ids belong to the account, and stay known when its key is replaced.
pub async fn request_ids_are_separate_per_account(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 10 * BASE).await, customer(&*store, 20 * BASE).await);
    let named = |key| charge_named(key, BASE, "same");
    let decisions = commit(&*store, vec![named(first.key), named(second.key)], NOON).await;
    assert!(decisions.iter().all(|decision| matches!(decision, Decision::Accepted(receipt) if !receipt.repeated)));
    let new = new_key();
    store.replace_key(&first.id, new, NOON).await.unwrap();
    assert_eq!(summary(&accepted(&*store, named(new), NOON).await), (true, BASE, 9 * BASE));
    assert_eq!(summary(&accepted(&*store, named(second.key), NOON).await), (true, BASE, 19 * BASE));
}

/// Ids are compared exactly, up to the longest.
pub async fn ids_are_compared_exactly(store: Arc<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let longest = "x".repeat(128);
    let names = ["a", "A", "a'", "%", "_", "1", "01", "1.0", &longest, &longest[1..]];
    for name in names {
        assert!(!accepted(&*store, charge_named(customer.key, BASE, name), NOON).await.repeated, "{name}");
    }
    for name in names {
        assert!(accepted(&*store, charge_named(customer.key, BASE, name), NOON).await.repeated, "{name}");
    }
    assert_eq!(balance(&*store, &customer.id).await, 90 * BASE);
}

/// A retry's receipt has the account's current use of its rate limits.
pub async fn a_retry_shows_the_running_window(store: Arc<dyn Store>) {
    let limits = RateLimits::per_minute(9);
    let customer = customer_with(&*store, 10 * BASE, limits).await;
    accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
    let later = NOON.saturating_add(super::scene::MINUTE);
    let retry = accepted(&*store, charge_named(customer.key, BASE, "r1").with_price(atoms(1)), later).await;
    assert_eq!((retry.rate.at, retry.rate.minute.count, retry.rate.day.count), (later, 0, 1));
}

/// Expired ids are deleted, and the number deleted is returned.
pub async fn expiry_deletes_expired_request_ids(store: Verified<dyn Store>) {
    let (first, second) = (customer(&*store, 10 * BASE).await, customer(&*store, 10 * BASE).await);
    assert_eq!(store.forget_expired(NOON).await.unwrap(), 0);
    let later = NOON.saturating_add(Duration::from_secs(1));
    for name in ["r1", "r2"] {
        accepted(&*store, charge_named(first.key, BASE, name), NOON).await;
    }
    accepted(&*store, charge_named(second.key, BASE, "r1"), later).await;
    accepted(&*store, charge(second.key, BASE), NOON).await;
    assert_eq!(store.forget_expired(end_of_memory(NOON).saturating_sub(Duration::from_millis(1))).await.unwrap(), 0);
    assert_eq!(store.forget_expired(end_of_memory(NOON)).await.unwrap(), 2);
    assert_eq!(store.forget_expired(end_of_memory(NOON)).await.unwrap(), 0);
    assert_eq!(store.forget_expired(end_of_memory(later)).await.unwrap(), 1);
    assert_eq!(balance(&*store, &second.id).await, 8 * BASE, "nothing else is deleted");
}

/// A deleted id is new, even for a node with a lagging clock.
pub async fn deleted_request_ids_stay_deleted(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    accepted(&*store, charge_named(customer.key, BASE, "r1"), NOON).await;
    assert_eq!(store.forget_expired(end_of_memory(NOON)).await.unwrap(), 1);
    let lagging = end_of_memory(NOON).saturating_sub(Duration::from_secs(1));
    let again = accepted(&*store, charge_named(customer.key, BASE, "r1"), lagging).await;
    assert_eq!(summary(&again), (false, BASE, 8 * BASE));
}
