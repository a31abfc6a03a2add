//! Contracts for keys that ended: an account keeps its newest, and older ones are deleted without changing any sum.

use std::time::Duration;

use metering_core::Refusal;
use metering_core::access::{Key, KeyTerms};
use metering_core::charging::Refund;
use metering_core::clock::Timestamp;
use metering_core::store::{KeyChange, KeyChanged, NewKey, Store, TermsChange};

use super::hold_scene;
use super::key_scene::{
    Issued, budget, caller, change_at, create_key, first, issue, manager, new_key_of, revoke, spent, status,
};
use super::scene::{
    ALWAYS, BASE, Customer, DAY, MINUTE, NOON, Verified, accepted, assert_verified, balance, charge, commit_refund,
    customer, new_key, refused, report,
};

/// Creates as many child keys of the first one as an account keeps after their end. They expire soon.
async fn fill(store: &dyn Store, customer: &Customer) {
    let terms = KeyTerms { expires_at: Some(NOON.saturating_add(MINUTE)), ..caller() };
    for _ in 0..Key::MAX_ENDED {
        create_key(store, NewKey { max_keys: u32::MAX, ..new_key_of(&customer.id, None, terms.clone()) }).await;
    }
}

/// Deletes what expired, after the newest usage was added to the daily totals: backends do that when more is charged, or
/// when they are idle.
async fn forget(store: &dyn Store, customer: &Customer, key: &Issued, now: Timestamp) -> bool {
    for _ in 0..100 {
        store.forget_expired(now).await.unwrap();
        if store.key(&customer.id, &key.id, now.day()).await.unwrap().is_none() {
            return true;
        }
        accepted(store, charge(customer.key, 0), now).await;
    }
    false
}

async fn refund_of_a_charge(store: &dyn Store, key: &Issued) -> Refund {
    accepted(store, charge(key.secret, BASE), NOON).await.into_refund().expect("there is a charge to refund")
}

/// The oldest ended keys beyond those that an account keeps are deleted some time after their end. Their usage counts
/// as their parent's. Parents of keys that stay, and keys with holds, stay.
pub async fn oldest_ended_keys_are_deleted(store: Verified<dyn Store>) {
    let owner = customer(&*store, 100 * BASE).await;
    let parent = issue(&*store, &owner.id, None, KeyTerms { budget: budget(50 * BASE, None), ..manager() }).await;
    let [used, unused, holding] = [
        issue(&*store, &owner.id, Some(&parent), manager()).await,
        issue(&*store, &owner.id, Some(&parent), caller()).await,
        issue(&*store, &owner.id, Some(&parent), caller()).await,
    ];
    let below = issue(&*store, &owner.id, Some(&used), caller()).await;
    let upper = issue(&*store, &owner.id, None, manager()).await;
    let lasting = issue(&*store, &owner.id, Some(&upper), caller()).await;
    for key in [&used, &below, &parent] {
        accepted(&*store, charge(key.secret, BASE), NOON).await;
    }
    let refund = refund_of_a_charge(&*store, &below).await;
    let hold = hold_scene::open(&*store, holding.secret, BASE).await;
    for key in [&used, &unused, &holding] {
        revoke(&*store, &owner.id, &key.id).await;
    }
    let expiring = TermsChange { expires_at: Some(Some(NOON)), ..TermsChange::default() };
    change_at(&*store, &owner.id, &upper.id, expiring, NOON).await;
    fill(&*store, &owner).await;
    let before = (spent(&*store, &owner.id, &parent.id).await, balance(&*store, &owner.id).await);
    let soon = NOON.saturating_add(Key::ENDED_RETENTION).saturating_sub(Duration::from_millis(1));
    store.forget_expired(soon).await.unwrap();
    for key in [&used, &below, &unused, &holding] {
        assert!(
            status(&*store, &owner.id, &key.id, soon).await.key.revoked_at.is_some(),
            "they ended a short time ago"
        );
    }
    let late = NOON.saturating_add(DAY);
    for key in [&used, &below, &unused] {
        assert!(forget(&*store, &owner, key, late).await, "{key:?}");
        assert_eq!(store.key_holder(&key.secret).await.unwrap(), None);
        assert_eq!(refused(&*store, charge(key.secret, BASE), late).await, Refusal::UnknownKey);
    }
    for key in [&parent, &holding, &upper, &lasting] {
        status(&*store, &owner.id, &key.id, late).await;
    }
    assert_eq!((spent(&*store, &owner.id, &parent.id).await, balance(&*store, &owner.id).await), before);
    let used_up = report(&*store, &owner.id, ALWAYS).await;
    let of_parent = used_up.by_key.iter().find(|total| total.key == parent.number).expect("the parent was used");
    assert_eq!((of_parent.call_count, of_parent.credits_used.atoms()), (4, 4 * BASE));
    assert!(used_up.by_key.iter().all(|total| total.key == parent.number || total.key.is_first()), "{used_up:?}");
    assert_eq!(commit_refund(&*store, refund, late).await.map(|left| left.atoms()), Some(before.1 + BASE));
    assert_verified(&*store).await;
    hold_scene::act(&*store, &owner.id, hold, hold_scene::capture(BASE), late).await;
    let end = late.saturating_add(DAY * 2);
    assert!(forget(&*store, &owner, &holding, end).await, "its hold was forgotten");
    let next = create_key(&*store, NewKey { max_keys: u32::MAX, ..new_key_of(&owner.id, None, caller()) }).await;
    let made = u32::try_from(Key::MAX_ENDED).unwrap() + lasting.number.get();
    assert_eq!(next.number.get(), made + 1, "no number is given out twice");
}

/// A key keeps its newest ended secrets; a rotation deletes older ones some time after their end.
pub async fn oldest_ended_secrets_are_deleted(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let first = first(&*store, &customer).await;
    let rotate = async |secret, now| {
        let rotation = KeyChange::Rotate { secret, old_until: None };
        store.change_key(&customer.id, &first.id, None, rotation, now).await.unwrap()
    };
    let step = Duration::from_secs(1);
    let (mut secrets, mut now) = (vec![customer.key], NOON);
    for _ in 0..Key::MAX_ENDED_SECRETS + 3 {
        now = now.saturating_add(step);
        let secret = new_key();
        assert!(matches!(rotate(secret, now).await, KeyChanged::Key(_)));
        secrets.push(secret);
    }
    assert_eq!(rotate(customer.key, now).await, KeyChanged::SecretUsed);
    // Ended by now: all but the newest. The rotation deletes three of them.
    let late = now.saturating_add(Key::ENDED_RETENTION);
    assert!(matches!(rotate(new_key(), late).await, KeyChanged::Key(_)));
    assert_eq!(rotate(secrets[3], late).await, KeyChanged::SecretUsed);
    assert_eq!(store.live_keys(&secrets, late).await.unwrap(), vec![false; secrets.len()]);
    assert_eq!(refused(&*store, charge(customer.key, BASE), late).await, Refusal::UnknownKey);
    assert!(matches!(rotate(secrets[2], late).await, KeyChanged::Key(_)), "its record was deleted");
}
