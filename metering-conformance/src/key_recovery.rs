//! Contracts for keys that were lost or leaked: what stops, what stays, and how an owner gets back in.

use metering_core::Refusal;
use metering_core::access::{KeyTerms, RateLimits};
use metering_core::store::{KeyChange, KeyChanged, Store, TermsChange};

use super::key_scene::{budget, caller, change, changed, first, issue, manager, revoke, spent, status, try_change};
use super::scene::{BASE, MINUTE, NOON, Verified, accepted, atoms, charge, customer, new_key, refused};

/// An owner who proves their identity recovers the first key. Keys that can manage keys are revoked, with all their
/// child keys; others stay.
pub async fn replaced_key_revokes_the_managers(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let manager = issue(&*store, &customer.id, None, manager()).await;
    let below = issue(&*store, &customer.id, Some(&manager), caller()).await;
    let caller = issue(&*store, &customer.id, None, caller()).await;
    let secret = new_key();
    let at = NOON.saturating_add(MINUTE);
    store.replace_key(&customer.id, secret, at).await.unwrap().expect("the account is live");
    let secrets = [customer.key, secret, manager.secret, below.secret, caller.secret];
    assert_eq!(store.live_keys(&secrets, NOON).await.unwrap(), [false, true, false, false, true]);
    for (secret, works) in secrets.into_iter().zip([false, true, false, false, true]) {
        if works {
            accepted(&*store, charge(secret, BASE), NOON).await;
        } else {
            assert_eq!(refused(&*store, charge(secret, BASE), NOON).await, Refusal::UnknownKey);
        }
    }
    assert_eq!(status(&*store, &customer.id, &manager.id, NOON).await.key.revoked_at, Some(at));
    let below = status(&*store, &customer.id, &below.id, NOON).await;
    assert_eq!((below.key.revoked_at, below.parents_are_live), (Some(at), false));
    let listed = store.keys(&customer.id, None, 10, NOON.day()).await.unwrap().items;
    assert_eq!(listed.iter().map(|status| status.key.number.get()).collect::<Vec<_>>(), [0, 3]);
}

/// A person who could manage keys may have rotated one with a grace period, so a recovery ends all grace periods.
pub async fn replaced_key_ends_grace_periods(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let key = issue(&*store, &customer.id, None, caller()).await;
    let (newest, first) = (new_key(), new_key());
    let rotate = KeyChange::Rotate { secret: newest, old_until: Some(NOON.saturating_add(MINUTE * 10)) };
    changed(store.change_key(&customer.id, &key.id, None, rotate, NOON).await.unwrap());
    assert_eq!(store.live_keys(&[key.secret, newest], NOON).await.unwrap(), [true, true]);
    store.replace_key(&customer.id, first, NOON).await.unwrap().expect("the account is live");
    assert_eq!(store.live_keys(&[key.secret, newest, first], NOON).await.unwrap(), [false, true, true]);
    assert_eq!(refused(&*store, charge(key.secret, BASE), NOON).await, Refusal::UnknownKey);
    accepted(&*store, charge(newest, BASE), NOON).await;
}

/// The first key is in its original state, except for its name, limits and budget.
pub async fn replaced_key_resets_the_first_key(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let key = first(&*store, &customer).await;
    let narrowed = TermsChange {
        name: "mine".parse().ok(),
        routes: "/other".parse().ok(),
        networks: "10.0.0.0/8".parse().ok(),
        max_in_flight: Some(1),
        requests_per_minute: Some(9),
        limit: Some(Some(atoms(3 * BASE))),
        ..TermsChange::default()
    };
    accepted(&*store, charge(key.secret, BASE), NOON).await;
    change(&*store, &customer.id, &key.id, narrowed).await;
    refused(&*store, charge(key.secret, BASE), NOON).await;
    store.report_leaked(&key.secret, NOON).await.unwrap().expect("the secret works");
    let secret = new_key();
    store.replace_key(&customer.id, secret, NOON).await.unwrap().expect("the account is live");
    let found = status(&*store, &customer.id, &key.id, NOON).await.key;
    let expected = KeyTerms {
        name: "mine".parse().unwrap(),
        limits: RateLimits::per_minute(9),
        max_in_flight: 1,
        budget: budget(3 * BASE, None),
        ..KeyTerms::first()
    };
    assert_eq!((found.terms, found.leaked_at, found.id), (expected, None, key.id.clone()));
    assert_eq!(spent(&*store, &customer.id, &key.id).await, BASE, "a new secret gives no new budget");
    accepted(&*store, charge(secret, 2 * BASE), NOON).await;
    let refusal = refused(&*store, charge(secret, BASE), NOON).await;
    assert!(matches!(refusal, Refusal::KeyBudget { .. }), "{refusal:?}");
}

/// A leaked key stops working immediately, with its child keys. A rotation restores it, but not them: the finder of the
/// secret may have created them.
pub async fn leaked_key_works_again_after_a_rotation(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let parent = issue(&*store, &customer.id, None, manager()).await;
    let child = issue(&*store, &customer.id, Some(&parent), caller()).await;
    let (second, third) = (new_key(), new_key());
    let old_until = Some(NOON.saturating_add(MINUTE * 10));
    let graceful = KeyChange::Rotate { secret: second, old_until };
    changed(store.change_key(&customer.id, &parent.id, None, graceful, NOON).await.unwrap());
    let at = NOON.saturating_add(MINUTE);
    let leaked = store.report_leaked(&second, at).await.unwrap().expect("the secret works");
    assert_eq!((&leaked.id, leaked.leaked_at, leaked.revoked_at), (&parent.id, Some(at), None));
    let secrets = [parent.secret, second, child.secret];
    assert_eq!(store.live_keys(&secrets, at).await.unwrap(), [false; 3]);
    assert_eq!(store.report_leaked(&second, at).await.unwrap(), None, "it no longer works");
    assert_eq!(store.report_leaked(&new_key(), at).await.unwrap(), None, "nobody has this secret");
    assert_eq!(store.replace_live_key(&second, third, at).await.unwrap(), None, "its finder rotates nothing");
    let enabled = TermsChange { disabled: Some(false), ..TermsChange::default() };
    assert_eq!(try_change(&*store, &customer.id, &parent.id, None, enabled).await, KeyChanged::Leaked);
    let rotate = KeyChange::Rotate { secret: third, old_until };
    let key = changed(store.change_key(&customer.id, &parent.id, None, rotate, at).await.unwrap());
    assert_eq!((key.leaked_at, key.is_live()), (None, true));
    assert_eq!(
        store.live_keys(&[parent.secret, second, third, child.secret], at).await.unwrap(),
        [false, false, true, false],
        "a grace period is for secrets that still work"
    );
    assert_eq!(status(&*store, &customer.id, &child.id, NOON).await.key.revoked_at, Some(at));
    assert_eq!(refused(&*store, charge(child.secret, BASE), at).await, Refusal::UnknownKey);
    accepted(&*store, charge(third, BASE), at).await;
    let next = issue(&*store, &customer.id, Some(&parent), caller()).await;
    let rotate = KeyChange::Rotate { secret: new_key(), old_until: None };
    changed(store.change_key(&customer.id, &parent.id, None, rotate, at).await.unwrap());
    accepted(&*store, charge(next.secret, BASE), at).await;
}

/// A report of a secret that was replaced ends that secret early; the key, its new secret and its child keys stay.
pub async fn report_of_a_replaced_secret_ends_it_early(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let parent = issue(&*store, &customer.id, None, manager()).await;
    let child = issue(&*store, &customer.id, Some(&parent), caller()).await;
    let second = new_key();
    let rotate = KeyChange::Rotate { secret: second, old_until: Some(NOON.saturating_add(MINUTE * 10)) };
    let before = changed(store.change_key(&customer.id, &parent.id, None, rotate, NOON).await.unwrap());
    let found = store.report_leaked(&parent.secret, NOON).await.unwrap();
    assert_eq!(found, Some(before.clone()));
    let secrets = [parent.secret, second, child.secret];
    assert_eq!(store.live_keys(&secrets, NOON).await.unwrap(), [false, true, true]);
    assert_eq!(status(&*store, &customer.id, &parent.id, NOON).await.key, before);
    assert_eq!(store.report_leaked(&parent.secret, NOON).await.unwrap(), None, "it no longer works");
    accepted(&*store, charge(child.secret, BASE), NOON).await;
}

/// A secret that has expired, or whose key or account was revoked, cannot be reported.
pub async fn only_a_working_secret_is_reported(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let (rotated, revoked) =
        (issue(&*store, &customer.id, None, caller()).await, issue(&*store, &customer.id, None, caller()).await);
    let until = NOON.saturating_add(MINUTE);
    let rotate = KeyChange::Rotate { secret: new_key(), old_until: Some(until) };
    changed(store.change_key(&customer.id, &rotated.id, None, rotate, NOON).await.unwrap());
    assert_eq!(store.report_leaked(&rotated.secret, until).await.unwrap(), None);
    assert!(status(&*store, &customer.id, &rotated.id, NOON).await.key.is_live());
    revoke(&*store, &customer.id, &revoked.id).await;
    assert_eq!(store.report_leaked(&revoked.secret, NOON).await.unwrap(), None);
    store.revoke_account(&customer.id, NOON).await.unwrap();
    assert_eq!(store.report_leaked(&customer.key, NOON).await.unwrap(), None);
}
