//! Contracts for revoked accounts: they cannot spend or buy anything, and their records are kept.

use std::sync::Arc;
use std::time::Duration;

use metering_core::Refusal;
use metering_core::access::RateLimits;
use metering_core::store::{Posted, Store};

use super::scene::{
    ALWAYS, BASE, NOON, Verified, accepted, account, adjustment, all_daily_totals, atoms, charge, charge_named,
    commit_refund, customer, new_key, refused, report,
};

/// As soon as the revocation returns, the key is refused.
pub async fn a_revoked_key_is_refused(store: Arc<dyn Store>) {
    let (revoked, other) = (customer(&*store, 5 * BASE).await, customer(&*store, 5 * BASE).await);
    accepted(&*store, charge_named(revoked.key, BASE, "r1"), NOON).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap().expect("the account exists");
    assert_eq!(refused(&*store, charge(revoked.key, BASE), NOON).await, Refusal::UnknownKey);
    assert_eq!(refused(&*store, charge(revoked.key, 0), NOON).await, Refusal::UnknownKey);
    let retry = charge_named(revoked.key, BASE, "r1");
    assert_eq!(refused(&*store, retry, NOON).await, Refusal::UnknownKey, "a known request id does not help");
    assert_eq!(store.account_by_key(&revoked.key).await.unwrap(), None);
    assert_eq!(store.live_keys(&[revoked.key, other.key], NOON).await.unwrap(), [false, true]);
    accepted(&*store, charge(other.key, BASE), NOON).await;
}

/// A second revocation returns the result of the first and changes nothing.
pub async fn revoking_twice_changes_nothing(store: Arc<dyn Store>) {
    let revoked = customer(&*store, BASE).await;
    let first = store.revoke_account(&revoked.id, NOON).await.unwrap().expect("the account exists");
    assert_eq!(first.revoked_at, Some(NOON));
    let later = NOON.saturating_add(Duration::from_secs(1));
    assert_eq!(store.revoke_account(&revoked.id, later).await.unwrap(), Some(first.clone()));
    assert_eq!(account(&*store, &revoked.id).await, first);
}

/// A revoked account's usage, activity and ledger can be read as before.
pub async fn a_revoked_account_keeps_its_records(store: Arc<dyn Store>) {
    let revoked = customer(&*store, 5 * BASE).await;
    accepted(&*store, charge(revoked.key, BASE), NOON).await;
    let before = account(&*store, &revoked.id).await;
    let report_before = report(&*store, &revoked.id, ALWAYS).await;
    let activity = store.activity(&revoked.id, 10).await.unwrap();
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let after = account(&*store, &revoked.id).await;
    assert_eq!(after.totals, before.totals);
    assert_eq!(store.accounts(None, 10).await.unwrap().items, std::slice::from_ref(&after));
    let report_after = report(&*store, &revoked.id, ALWAYS).await;
    assert_eq!(report_after.account, after);
    assert_eq!(
        (report_after.by_day, report_after.by_endpoint, report_after.credits_added),
        (report_before.by_day, report_before.by_endpoint, report_before.credits_added),
    );
    assert_eq!(store.activity(&revoked.id, 10).await.unwrap(), activity);
    assert_eq!(store.ledger(None, 10).await.unwrap().items.len(), 1);
    assert_eq!(all_daily_totals(&*store).await.len(), 1);
    assert_eq!(store.verify().await.unwrap().accounts, 1);
}

/// A revoked account cannot be granted credits.
pub async fn revoked_account_accepts_no_entry(store: Arc<dyn Store>) {
    let revoked = customer(&*store, 5).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    assert_eq!(store.post_entry(&revoked.id, adjustment(1), NOON).await.unwrap(), Posted::NoSuchAccount);
    assert_eq!(account(&*store, &revoked.id).await.totals.balance, atoms(5));
    assert_eq!(store.ledger(None, 10).await.unwrap().items.len(), 1);
}

/// A revoked account cannot get a new key.
pub async fn a_revoked_account_gets_no_new_key(store: Arc<dyn Store>) {
    let revoked = customer(&*store, BASE).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let key = new_key();
    assert_eq!(store.replace_key(&revoked.id, key, NOON).await.unwrap(), None);
    assert_eq!(store.live_keys(&[key, revoked.key], NOON).await.unwrap(), [false, false]);
    assert_eq!(refused(&*store, charge(key, BASE), NOON).await, Refusal::UnknownKey);
}

/// A revoked account's rate limits can be set, but it stays revoked.
pub async fn revoked_account_accepts_new_limits(store: Arc<dyn Store>) {
    let revoked = customer(&*store, BASE).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let limits = RateLimits::per_minute(3).and_per_day(4);
    let result = store.set_limits(&revoked.id, limits).await.unwrap().expect("the account exists");
    assert_eq!((result.limits, result.revoked_at), (limits, Some(NOON)));
    assert_eq!(account(&*store, &revoked.id).await, result);
    assert_eq!(refused(&*store, charge(revoked.key, BASE), NOON).await, Refusal::UnknownKey);
}

/// A revoked account still gets refunds, so totals stay exact.
pub async fn revoked_account_is_refunded(store: Verified<dyn Store>) {
    let revoked = customer(&*store, 5 * BASE).await;
    let receipt = accepted(&*store, charge(revoked.key, BASE), NOON).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let refund = receipt.into_refund().expect("there is a charge to refund");
    assert_eq!(commit_refund(&*store, refund, NOON).await, Some(atoms(5 * BASE)));
    assert_eq!(account(&*store, &revoked.id).await.totals.balance, atoms(5 * BASE));
}
