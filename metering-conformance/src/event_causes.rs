//! Contracts for events of keys and holds: each cause writes one, and refused changes write none.

use std::sync::Arc;

use metering_core::access::{AccountId, KeyId};
use metering_core::charging::HoldAction;
use metering_core::clock::Timestamp;
use metering_core::events::EventKind::{HoldExpired, KeyCreated, KeyLeaked, KeyRevoked};
use metering_core::events::{Event, EventKind};
use metering_core::store::{
    Created, EventStore, KeyChange, KeyChanged, KeyCreated as Outcome, NewAccount, NewKey, TermsChange,
};

use super::event_scene::{at, events, later_events, newest, reported};
use super::hold_scene::{FALLBACK, act, capture, later, open};
use super::key_scene::{budget, caller, change, changed, create_key, first, issue, manager, new_key_of, revoke};
use super::scene::{
    BASE, NOON, Verified, atoms, charge, commit, create, customer, new_account, new_id, new_key, paged,
};

fn of_key(account: &AccountId, id: &KeyId, name: &str) -> String {
    format!(r#"{{"org_id":"{account}","key_id":"{id}","key_name":"{name}"}}"#)
}

fn shown(event: &Event) -> (EventKind, &str, Timestamp) {
    (event.kind, event.data.as_str(), event.created_at)
}

/// The first key's event is written with its account, and every other key's when it is created.
pub async fn created_keys_are_told(store: Arc<dyn EventStore>) {
    let new = NewAccount { created_at: at(5), ..new_account() };
    let (id, key) = (new.id.clone(), new.key);
    create(&*store, new).await;
    let first = store.key_holder(&key).await.unwrap().unwrap().chain.remove(0);
    let all = events(&*store, &id).await;
    assert_eq!(
        all.iter().map(shown).collect::<Vec<_>>(),
        [(KeyCreated, of_key(&id, &first.id, "First key").as_str(), at(5))]
    );
    assert_eq!(all[0].id().as_str().len(), 36);
    let new = NewKey { created_at: at(7), ..new_key_of(&id, None, caller()) };
    let made = create_key(&*store, new.clone()).await;
    let all = events(&*store, &id).await;
    assert_eq!(
        all[1..].iter().map(shown).collect::<Vec<_>>(),
        [(KeyCreated, of_key(&id, &made.id, "caller").as_str(), at(7))]
    );
    assert_eq!(create_key(&*store, new).await, made);
    assert_eq!(events(&*store, &id).await.len(), 2, "a repeated request creates nothing");
    assert_ne!(all[0].id(), all[1].id());
}

/// Changes that are refused, or change nothing, write no events.
pub async fn refused_changes_are_not_told(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 100 * BASE).await;
    let key = issue(&*store, &owner.id, None, caller()).await;
    let first = first(&*store, &owner).await;
    let before = events(&*store, &owner.id).await;
    let taken = NewAccount { email: "a@example.com".parse().ok(), ..new_account() };
    create(&*store, taken.clone()).await;
    let again = NewAccount { email: taken.email, ..new_account() };
    let refused = again.id.clone();
    assert_eq!(store.create_account(again).await.unwrap(), Created::EmailTaken);
    assert_eq!(events(&*store, &refused).await, []);
    store.create_account(NewAccount { id: owner.id.clone(), ..new_account() }).await.unwrap_err();
    let outcomes = [
        store.create_key(new_key_of(&owner.id, Some(&key.id), caller())).await.unwrap(),
        store.create_key(NewKey { secret: owner.key, ..new_key_of(&owner.id, None, caller()) }).await.unwrap(),
        store.create_key(NewKey { max_keys: 2, ..new_key_of(&owner.id, None, caller()) }).await.unwrap(),
    ];
    assert_eq!(outcomes, [Outcome::NoSuchParent, Outcome::SecretUsed, Outcome::TooMany]);
    let unknown = new_key_of(&new_id(), None, caller());
    assert_eq!(store.create_key(unknown).await.unwrap(), Outcome::NoSuchAccount);
    let changes = [
        store.change_key(&owner.id, &first.id, None, KeyChange::Revoke, NOON).await.unwrap(),
        store.change_key(&owner.id, &first.id, Some(&key.id), KeyChange::Revoke, NOON).await.unwrap(),
    ];
    assert_eq!(changes, [KeyChanged::FirstKey, KeyChanged::NoSuchKey]);
    assert_eq!(store.report_leaked(&new_key(), NOON).await.unwrap(), None);
    assert_eq!(store.replace_key(&new_id(), new_key(), NOON).await.unwrap(), None);
    assert_eq!(events(&*store, &owner.id).await, before);
}

/// New terms or a new secret write no event: it is the same key.
pub async fn changed_and_rotated_keys_are_not_told(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 100 * BASE).await;
    let key = issue(&*store, &owner.id, None, caller()).await;
    let before = events(&*store, &owner.id).await;
    let terms = TermsChange { disabled: Some(true), limit: Some(Some(atoms(7))), ..TermsChange::default() };
    change(&*store, &owner.id, &key.id, terms).await;
    for old_until in [None, Some(at(600))] {
        let rotate = KeyChange::Rotate { secret: new_key(), old_until };
        changed(store.change_key(&owner.id, &key.id, None, rotate, NOON).await.unwrap());
    }
    store.replace_live_key(&owner.key, new_key(), NOON).await.unwrap().expect("the key works");
    store.replace_key(&owner.id, new_key(), NOON).await.unwrap().expect("the account is live");
    assert_eq!(events(&*store, &owner.id).await, before);
}

/// Revoking a key revokes its child keys. Each has one event; keys that were revoked before have none.
pub async fn revoked_keys_are_told_with_those_below(store: Verified<dyn EventStore>) {
    let owner = customer(&*store, 100 * BASE).await;
    let above = issue(&*store, &owner.id, None, manager()).await;
    let below = issue(&*store, &owner.id, Some(&above), manager()).await;
    let [deepest, before] = [
        issue(&*store, &owner.id, Some(&below), caller()).await,
        issue(&*store, &owner.id, Some(&above), caller()).await,
    ];
    let other = issue(&*store, &owner.id, None, caller()).await;
    revoke(&*store, &owner.id, &before.id).await;
    assert_eq!(newest(&*store, &owner.id).await, of_key(&owner.id, &before.id, "caller"));
    let known = events(&*store, &owner.id).await.len();
    changed(store.change_key(&owner.id, &above.id, None, KeyChange::Revoke, at(9)).await.unwrap());
    let all = events(&*store, &owner.id).await;
    let reported = &all[known..];
    assert!(reported.iter().all(|event| (event.kind, event.created_at) == (KeyRevoked, at(9))), "{reported:?}");
    let mut data: Vec<_> = reported.iter().map(|event| event.data.clone()).collect();
    let own = of_key(&owner.id, &above.id, "manager");
    assert_eq!(data.pop().as_ref(), Some(&own), "child keys come first");
    data.sort();
    let mut expected = [of_key(&owner.id, &below.id, "manager"), of_key(&owner.id, &deepest.id, "caller")];
    expected.sort();
    assert_eq!(data, expected);
    let again = store.change_key(&owner.id, &above.id, None, KeyChange::Revoke, NOON).await.unwrap();
    assert_eq!(again, KeyChanged::NoSuchKey);
    assert_eq!(events(&*store, &owner.id).await.len(), all.len());
    assert!(!all.iter().any(|event| event.kind == KeyRevoked && event.data.contains(other.id.as_str())));
}

/// A recovery writes an event for each key that it revoked.
pub async fn a_recovery_tells_the_revoked_managers(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 100 * BASE).await;
    let above = issue(&*store, &owner.id, None, manager()).await;
    let below = issue(&*store, &owner.id, Some(&above), caller()).await;
    issue(&*store, &owner.id, None, caller()).await;
    store.replace_key(&owner.id, new_key(), at(3)).await.unwrap().expect("the account is live");
    let all = later_events(&*store, &owner.id).await;
    let mut revoked: Vec<_> = all.iter().skip(3).map(shown).collect();
    revoked.sort_unstable();
    let data = [of_key(&owner.id, &above.id, "manager"), of_key(&owner.id, &below.id, "caller")];
    let mut expected = [(KeyRevoked, data[0].as_str(), at(3)), (KeyRevoked, data[1].as_str(), at(3))];
    expected.sort_unstable();
    assert_eq!(revoked, expected);
}

/// A leak writes one event. A secret in its grace period only stops, without an event.
pub async fn a_leak_is_told_once(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 100 * BASE).await;
    let key = issue(&*store, &owner.id, None, manager()).await;
    let below = issue(&*store, &owner.id, Some(&key), caller()).await;
    let second = new_key();
    let rotate = |secret, old_until| KeyChange::Rotate { secret, old_until };
    changed(store.change_key(&owner.id, &key.id, None, rotate(second, Some(at(600))), NOON).await.unwrap());
    store.report_leaked(&key.secret, NOON).await.unwrap().expect("the old secret works");
    assert_eq!(reported(&*store, &owner.id).await, [KeyCreated, KeyCreated], "the key itself did not leak");
    store.report_leaked(&second, at(4)).await.unwrap().expect("the secret works");
    let all = later_events(&*store, &owner.id).await;
    let data = of_key(&owner.id, &key.id, "manager");
    assert_eq!(all[2..].iter().map(shown).collect::<Vec<_>>(), [(KeyLeaked, data.as_str(), at(4))]);
    assert_eq!(store.report_leaked(&second, at(5)).await.unwrap(), None, "it no longer works");
    changed(store.change_key(&owner.id, &key.id, None, rotate(new_key(), None), at(6)).await.unwrap());
    let all = later_events(&*store, &owner.id).await;
    let data = of_key(&owner.id, &below.id, "caller");
    let reported: Vec<_> = all[3..].iter().map(shown).collect();
    assert_eq!(
        reported,
        [(KeyRevoked, data.as_str(), at(6))],
        "the child keys of a leaked one are revoked when it is rotated"
    );
}

/// A hold has an event only when it is settled because its lease ended.
pub async fn an_expired_hold_is_told_once(store: Verified<dyn EventStore>) {
    let owner = customer(&*store, 1_000).await;
    let [captured, released, expired] =
        [open(&*store, owner.key, 50).await, open(&*store, owner.key, 50).await, open(&*store, owner.key, 50).await];
    act(&*store, &owner.id, captured, capture(50), NOON).await;
    act(&*store, &owner.id, released, HoldAction::Release, NOON).await;
    act(&*store, &owner.id, expired, HoldAction::Expire, NOON).await;
    assert_eq!(reported(&*store, &owner.id).await, [], "its lease has not ended");
    act(&*store, &owner.id, expired, HoldAction::Expire, later(31)).await;
    act(&*store, &owner.id, expired, HoldAction::Expire, later(32)).await;
    act(&*store, &owner.id, captured, HoldAction::Expire, later(32)).await;
    let all = later_events(&*store, &owner.id).await;
    let data = format!(
        r#"{{"org_id":"{}","request_id":"{expired}","held":{},"charged":{},"route_template":"/mpp/ethPrice","http_method":"GET"}}"#,
        owner.id,
        atoms(50),
        atoms(FALLBACK),
    );
    assert_eq!(all.iter().map(shown).collect::<Vec<_>>(), [(HoldExpired, data.as_str(), later(31))]);
}

/// Each account has its own events, with numbers that increase, newest first, in pages.
pub async fn events_are_paged_newest_first(store: Arc<dyn EventStore>) {
    let (owner, other) = (customer(&*store, 100 * BASE).await, customer(&*store, 100 * BASE).await);
    for _ in 0..6 {
        issue(&*store, &owner.id, None, caller()).await;
        issue(&*store, &other.id, None, caller()).await;
    }
    let mut all = events(&*store, &owner.id).await;
    assert_eq!(all.len(), 7);
    all.reverse();
    for limit in [1, 2, 3, 7, 8] {
        let found = paged(limit, async |after, limit| store.events(&owner.id, after, limit).await).await;
        assert_eq!(found, all, "{limit} at a time");
    }
    // An event that comes between two pages is not on the second one.
    let page = store.events(&owner.id, None, 3).await.unwrap();
    issue(&*store, &owner.id, None, caller()).await;
    assert_eq!(store.events(&owner.id, page.next.as_ref(), 100).await.unwrap().items, all[3..]);
    assert_eq!(store.events(&new_id(), None, 10).await.unwrap().items, []);
    let unknown = metering_core::store::Cursor::new("not a cursor".to_owned());
    store.events(&owner.id, Some(&unknown), 10).await.unwrap_err();
}

/// Names of keys may have quotes and any script; the data stays valid JSON, byte for byte.
pub async fn names_in_events_are_stored_exactly(store: Arc<dyn EventStore>) {
    let owner = customer(&*store, 1_000).await;
    let terms = metering_core::access::KeyTerms { name: "größer “x” \\ \"y\"".parse().unwrap(), ..caller() };
    let terms = metering_core::access::KeyTerms { budget: budget(5, None), ..terms };
    let key = issue(&*store, &owner.id, None, terms).await;
    assert_eq!(newest(&*store, &owner.id).await, of_key(&owner.id, &key.id, r#"größer “x” \\ \"y\""#));
    commit(&*store, vec![charge(key.secret, 5)], NOON).await;
    let data: serde_json::Value = serde_json::from_str(&newest(&*store, &owner.id).await).unwrap();
    assert_eq!(data["key_name"], "größer “x” \\ \"y\"");
    assert_eq!(data["limit_resets_at"], serde_json::Value::Null);
}
