//! Contracts for API keys: which are live, and what replacing one changes.

use std::sync::Arc;

use metering_core::access::RateLimits;
use metering_core::charging::LimitWindow;
use metering_core::store::Store;
use metering_core::{Decision, Refusal};

use super::scene::{
    ALWAYS, BASE, NOON, accepted, account, atoms, charge, commit, customer, customer_with, new_key, refused, report,
};

/// The old key stops working and the new one starts working immediately.
pub async fn a_replaced_key_is_refused_and_the_new_one_works(store: Arc<dyn Store>) {
    let customer = customer(&*store, 5 * BASE).await;
    let new = new_key();
    let result = store.replace_key(&customer.id, new, NOON).await.unwrap().expect("the account is live");
    assert_eq!(result, account(&*store, &customer.id).await);
    assert_eq!(refused(&*store, charge(customer.key, BASE), NOON).await, Refusal::UnknownKey);
    assert_eq!(store.account_by_key(&customer.key).await.unwrap(), None);
    assert_eq!(store.account_by_key(&new).await.unwrap(), Some(result));
    assert_eq!(store.live_keys(&[customer.key, new], NOON).await.unwrap(), [false, true]);
    let receipt = accepted(&*store, charge(new, BASE), NOON).await;
    assert_eq!((receipt.account, receipt.balance), (customer.id, atoms(4 * BASE)));
}

/// In one batch, each charge is decided by its own key.
pub async fn old_and_new_key_in_one_batch_are_distinguished(store: Arc<dyn Store>) {
    let customer = customer(&*store, 5 * BASE).await;
    let new = new_key();
    store.replace_key(&customer.id, new, NOON).await.unwrap();
    let keys = [customer.key, new, customer.key, new];
    let decisions = commit(&*store, keys.map(|key| charge(key, BASE)).to_vec(), NOON).await;
    let accepted = decisions.iter().map(|decision| matches!(decision, Decision::Accepted(_)));
    assert!(accepted.eq([false, true, false, true]));
    assert_eq!(account(&*store, &customer.id).await.totals.balance, atoms(3 * BASE));
}

/// Balance, usage and rate limit windows belong to the account, so a new key does not reset them.
pub async fn a_replaced_key_keeps_balance_and_windows(store: Arc<dyn Store>) {
    let limits = RateLimits::per_minute(2);
    let customer = customer_with(&*store, 9 * BASE, limits).await;
    let before = accepted(&*store, charge(customer.key, BASE), NOON).await;
    let new = new_key();
    store.replace_key(&customer.id, new, NOON).await.unwrap();
    let after = accepted(&*store, charge(new, BASE), NOON).await;
    assert_eq!((before.rate.minute.count, after.rate.minute.count), (1, 2));
    assert_eq!(after.balance, atoms(7 * BASE));
    let refusal = refused(&*store, charge(new, BASE), NOON).await;
    assert!(matches!(refusal, Refusal::RateLimited { window: LimitWindow::Minute, .. }), "{refusal:?}");
    assert_eq!(report(&*store, &customer.id, ALWAYS).await.by_day[0].usage_events, 2);
}

/// A key that an account has or had cannot be given to another account or used again.
pub async fn key_in_use_cannot_replace_another(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 5 * BASE).await, customer(&*store, 5 * BASE).await);
    let second_key = new_key();
    store.replace_key(&second.id, second_key, NOON).await.unwrap();
    for (what, key) in [("its own", first.key), ("another's", second_key), ("another's old one", second.key)] {
        assert!(store.replace_key(&first.id, key, NOON).await.is_err(), "{what}");
        assert_eq!(
            store.live_keys(&[first.key, second_key, second.key], NOON).await.unwrap(),
            [true, true, false],
            "{what}"
        );
    }
    assert_eq!(accepted(&*store, charge(first.key, BASE), NOON).await.account, first.id);
    assert_eq!(accepted(&*store, charge(second_key, BASE), NOON).await.account, second.id);
}

/// The result has one entry per key, in order.
pub async fn live_keys_are_returned_in_order(store: Arc<dyn Store>) {
    let (live, revoked, replaced) =
        (customer(&*store, 0).await, customer(&*store, BASE).await, customer(&*store, BASE).await);
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let new = new_key();
    store.replace_key(&replaced.id, new, NOON).await.unwrap();
    let keys = [new_key(), live.key, revoked.key, new, replaced.key, live.key];
    assert_eq!(store.live_keys(&keys, NOON).await.unwrap(), [false, true, false, true, false, true]);
    assert_eq!(store.live_keys(&[], NOON).await.unwrap(), [false; 0]);
    let many: Vec<_> = (0..1_500).map(|n| if n % 3 == 0 { live.key } else { new_key() }).collect();
    let results = store.live_keys(&many, NOON).await.unwrap();
    assert!(results.iter().copied().eq((0..1_500).map(|n| n % 3 == 0)));
}

/// The holder of a live key replaces it; the old key cannot do so again.
pub async fn a_live_key_is_replaced_once(store: Arc<dyn Store>) {
    let (customer, other) = (customer(&*store, 5 * BASE).await, customer(&*store, 5 * BASE).await);
    let (new, later) = (new_key(), new_key());
    accepted(&*store, charge(customer.key, BASE), NOON).await;
    let replaced = store.replace_live_key(&customer.key, new, NOON).await.unwrap().expect("the key is live");
    assert_eq!(replaced, account(&*store, &customer.id).await);
    assert_eq!(refused(&*store, charge(customer.key, BASE), NOON).await, Refusal::UnknownKey);
    assert_eq!(accepted(&*store, charge(new, BASE), NOON).await.account, customer.id);
    assert_eq!(store.replace_live_key(&customer.key, later, NOON).await.unwrap(), None);
    assert_eq!(store.replace_live_key(&later, new_key(), NOON).await.unwrap(), None, "nobody has this key");
    assert_eq!(
        store.live_keys(&[customer.key, new, later, other.key], NOON).await.unwrap(),
        [false, true, false, true]
    );
    let in_use = store.replace_live_key(&new, other.key, NOON).await.unwrap();
    assert_eq!(in_use, None, "another account has the new key");
    assert_eq!(store.live_keys(&[new, other.key], NOON).await.unwrap(), [true, true]);
    store.revoke_account(&customer.id, NOON).await.unwrap();
    assert_eq!(store.replace_live_key(&new, later, NOON).await.unwrap(), None, "the account is revoked");
}
