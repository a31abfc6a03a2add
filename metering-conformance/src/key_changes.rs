//! Contracts for creating, changing and rotating keys: permissions, refusals and their order.

use std::sync::Arc;

use metering_core::Refusal;
use metering_core::access::{BudgetReset, Key, KeyId, KeyStatus, KeyTerms, RateLimits, Scope, Scopes, WiderTerms};
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, NewKey, Store, TermsChange};

use super::key_scene::{
    Issued, budget, caller, change, changed, create_key, first, issue, manager, new_key_of, revoke, status, try_change,
};
use super::scene::{
    BASE, Customer, DAY, MINUTE, NOON, Verified, accepted, atoms, charge, customer, new_id, new_key, racing, refused,
};

const NO_CHANGE: fn() -> TermsChange = TermsChange::default;

fn unknown_id() -> KeyId {
    KeyId::of_first(&new_key())
}

async fn number_of_keys(store: &dyn Store, customer: &Customer) -> usize {
    store.key_labels(&customer.id).await.unwrap().len()
}

/// Creating a key is refused in a fixed order, and then creates nothing.
pub async fn creation_refusals_have_a_fixed_order(store: Verified<dyn Store>) {
    let (owner, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let mut deepest = issue(&*store, &owner.id, None, manager()).await;
    for _ in 2..Key::MAX_DEPTH {
        deepest = issue(&*store, &owner.id, Some(&deepest), manager()).await;
    }
    let narrow = issue(&*store, &owner.id, None, KeyTerms { scopes: Scopes::default(), ..manager() }).await;
    let limited = KeyTerms { max_in_flight: 1, ..manager() };
    let limited = issue(&*store, &owner.id, None, limited).await;
    let foreign = first(&*store, &other).await;
    let before = number_of_keys(&*store, &owner).await;
    let full = u32::try_from(before).unwrap();
    let wide = KeyTerms { max_in_flight: 2, ..manager() };
    let new = |parent: &KeyId, terms: &KeyTerms| new_key_of(&owner.id, Some(parent), terms.clone());
    let table = [
        (NewKey { account: new_id(), ..new(&unknown_id(), &wide) }, KeyCreated::NoSuchAccount),
        (NewKey { max_keys: 0, ..new(&unknown_id(), &wide) }, KeyCreated::NoSuchParent),
        (NewKey { max_keys: 0, ..new(&foreign.id, &wide) }, KeyCreated::NoSuchParent),
        (NewKey { max_keys: 0, ..new(&narrow.id, &caller()) }, KeyCreated::NoSuchParent),
        (NewKey { max_keys: 0, ..new(&deepest.id, &wide) }, KeyCreated::TooDeep),
        (NewKey { max_keys: full, ..new(&limited.id, &wide) }, KeyCreated::TooMany),
        (new(&limited.id, &wide), KeyCreated::Wider(WiderTerms::MaxInFlight)),
    ];
    for (new, expected) in table {
        let secret = new.secret;
        assert_eq!(store.create_key(new).await.unwrap(), expected);
        assert_eq!(store.live_keys(&[secret], NOON).await.unwrap(), [false], "{expected:?}");
    }
    assert_eq!(number_of_keys(&*store, &owner).await, before);
    create_key(&*store, NewKey { max_keys: full + 1, ..new(&limited.id, &caller()) }).await;
    revoke(&*store, &owner.id, &narrow.id).await;
    create_key(&*store, NewKey { max_keys: full + 1, ..new(&limited.id, &caller()) }).await;
    store.revoke_account(&owner.id, NOON).await.unwrap();
    assert_eq!(store.create_key(new(&limited.id, &caller())).await.unwrap(), KeyCreated::NoSuchAccount);
}

/// A parent that is not live, or below one that is not, makes no keys.
pub async fn parent_that_is_not_live_makes_no_keys(store: Arc<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let disabled = TermsChange { disabled: Some(true), ..NO_CHANGE() };
    let expiring = TermsChange { expires_at: Some(Some(NOON)), ..NO_CHANGE() };
    let unmanaging = TermsChange { scopes: Some(Scopes::default()), ..NO_CHANGE() };
    for narrower in [disabled, expiring, unmanaging] {
        let parent = issue(&*store, &customer.id, None, manager()).await;
        let child = issue(&*store, &customer.id, Some(&parent), manager()).await;
        change(&*store, &customer.id, &parent.id, narrower.clone()).await;
        for key in [&parent, &child] {
            let new = new_key_of(&customer.id, Some(&key.id), caller());
            assert_eq!(store.create_key(new).await.unwrap(), KeyCreated::NoSuchParent, "{narrower:?}");
        }
    }
}

/// Terms that a new key does not set come from its parent.
pub async fn created_key_takes_over_what_it_leaves_open(store: Arc<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let outer = KeyTerms {
        routes: "/a/*".parse().unwrap(),
        networks: "10.0.0.0/8".parse().unwrap(),
        expires_at: Some(NOON.saturating_add(DAY)),
        budget: budget(10, None),
        ..manager()
    };
    let parent = issue(&*store, &customer.id, None, outer.clone()).await;
    let key = create_key(&*store, new_key_of(&customer.id, Some(&parent.id), caller())).await;
    let KeyTerms { routes, networks, expires_at, .. } = outer;
    assert_eq!(key.terms, KeyTerms { routes, networks, expires_at, ..caller() });
    assert_eq!(status(&*store, &customer.id, &key.id, NOON).await.key, key);
}

/// A request that is repeated gets the key that it made; a secret that is in use otherwise is refused.
pub async fn repeated_creation_returns_the_same_key(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let parent = issue(&*store, &customer.id, None, manager()).await;
    let new = new_key_of(&customer.id, Some(&parent.id), caller());
    let key = create_key(&*store, new.clone()).await;
    let before = number_of_keys(&*store, &customer).await;
    let again = NewKey { max_keys: 0, created_at: NOON.saturating_add(MINUTE), ..new.clone() };
    assert_eq!(create_key(&*store, again).await, key);
    let by_another = NewKey { parent: None, ..new.clone() };
    assert_eq!(store.create_key(by_another).await.unwrap(), KeyCreated::SecretUsed, "another parent");
    let of_first = NewKey { secret: customer.key, ..new.clone() };
    assert_eq!(store.create_key(of_first).await.unwrap(), KeyCreated::SecretUsed, "the first key's");
    revoke(&*store, &customer.id, &key.id).await;
    assert_eq!(store.create_key(new).await.unwrap(), KeyCreated::SecretUsed, "the key was revoked");
    assert_eq!(number_of_keys(&*store, &customer).await, before);
}

/// An expired key does not count towards the maximum number of keys of an account.
pub async fn expired_keys_make_room(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let expiry = NOON.saturating_add(MINUTE);
    for _ in 0..3 {
        issue(&*store, &customer.id, None, KeyTerms { expires_at: Some(expiry), ..caller() }).await;
    }
    let new = |created_at| NewKey { max_keys: 2, created_at, ..new_key_of(&customer.id, None, caller()) };
    let early = expiry.saturating_sub(std::time::Duration::from_millis(1));
    assert_eq!(store.create_key(new(early)).await.unwrap(), KeyCreated::TooMany);
    create_key(&*store, new(expiry)).await;
    assert_eq!(store.create_key(new(expiry)).await.unwrap(), KeyCreated::TooMany);
}

/// Revoking a key revokes every child key, and no other.
pub async fn revoked_key_revokes_the_keys_below(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let top = issue(&*store, &customer.id, None, manager()).await;
    let middle = issue(&*store, &customer.id, Some(&top), manager()).await;
    let below = issue(&*store, &customer.id, Some(&middle), caller()).await;
    let beside = issue(&*store, &customer.id, Some(&top), caller()).await;
    let other = issue(&*store, &customer.id, None, caller()).await;
    revoke(&*store, &customer.id, &middle.id).await;
    for (key, revoked_at) in
        [(&top, None), (&middle, Some(NOON)), (&below, Some(NOON)), (&beside, None), (&other, None)]
    {
        assert_eq!(status(&*store, &customer.id, &key.id, NOON).await.key.revoked_at, revoked_at, "{key:?}");
        let is_known = store.key_holder(&key.secret).await.unwrap().is_some();
        assert_eq!(is_known, revoked_at.is_none(), "{key:?}");
    }
    assert_eq!(refused(&*store, charge(below.secret, BASE), NOON).await, Refusal::UnknownKey);
    accepted(&*store, charge(beside.secret, BASE), NOON).await;
    let listed = store.keys(&customer.id, None, 10, NOON.day()).await.unwrap().items;
    assert_eq!(listed.iter().map(|status| status.key.number.get()).collect::<Vec<_>>(), [0, 1, 4, 5]);
    let outcome = try_change(&*store, &customer.id, &below.id, None, NO_CHANGE()).await;
    assert_eq!(outcome, KeyChanged::NoSuchKey);
}

/// 16 callers create keys where five have room: five are created.
pub async fn racing_creations_stay_below_the_limit(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let outcomes = racing(&store, 0..16, |store, _| {
        let new = new_key_of(&customer.id, None, caller());
        async move { store.create_key(NewKey { max_keys: 6, ..new }).await.unwrap() }
    })
    .await;
    let mut numbers: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            KeyCreated::Key(key) => Some(key.number.get()),
            outcome => {
                assert_eq!(outcome, &KeyCreated::TooMany);
                None
            }
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
}

/// Only a parent key, the key itself if it may manage keys, or the operator changes a key.
pub async fn key_is_changed_from_above(store: Verified<dyn Store>) {
    let (owner, other) = (customer(&*store, BASE).await, customer(&*store, BASE).await);
    let top = issue(&*store, &owner.id, None, manager()).await;
    let sibling = issue(&*store, &owner.id, None, manager()).await;
    let child = issue(&*store, &owner.id, Some(&top), caller()).await;
    let (own, foreign) = (first(&*store, &owner).await, first(&*store, &other).await);
    let renamed = || TermsChange { name: "renamed".parse().ok(), ..NO_CHANGE() };
    let table: [(&KeyId, Option<&Issued>, bool); 9] = [
        (&child.id, None, true),
        (&child.id, Some(&own), true),
        (&child.id, Some(&top), true),
        (&child.id, Some(&child), false),
        (&child.id, Some(&sibling), false),
        (&child.id, Some(&foreign), false),
        (&top.id, Some(&child), false),
        (&top.id, Some(&top), true),
        (&own.id, Some(&top), false),
    ];
    for (id, actor, may) in table {
        let outcome = try_change(&*store, &owner.id, id, actor.map(|actor| &actor.id), renamed()).await;
        assert_eq!(matches!(outcome, KeyChanged::Key(_)), may, "{id} by {actor:?}: {outcome:?}");
        assert!(may || outcome == KeyChanged::NoSuchKey, "{outcome:?}");
    }
    let by_operator = try_change(&*store, &other.id, &child.id, None, renamed()).await;
    assert_eq!(by_operator, KeyChanged::NoSuchKey, "another account's key");
    assert_eq!(try_change(&*store, &owner.id, &unknown_id(), None, renamed()).await, KeyChanged::NoSuchKey);
    revoke(&*store, &owner.id, &child.id).await;
    assert_eq!(try_change(&*store, &owner.id, &child.id, None, renamed()).await, KeyChanged::NoSuchKey);
    store.revoke_account(&owner.id, NOON).await.unwrap();
    assert_eq!(try_change(&*store, &owner.id, &top.id, None, renamed()).await, KeyChanged::NoSuchKey);
}

/// The first key keeps its scopes, does not expire, and is neither disabled nor revoked. Its other terms change.
pub async fn first_key_keeps_its_power(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let first = first(&*store, &customer).await;
    let refused_changes = [
        TermsChange { scopes: Some(Scopes::default()), ..NO_CHANGE() },
        TermsChange { disabled: Some(true), ..NO_CHANGE() },
        TermsChange { expires_at: Some(Some(NOON.saturating_add(DAY))), ..NO_CHANGE() },
    ];
    for actor in [None, Some(&first.id)] {
        for change in &refused_changes {
            let outcome = try_change(&*store, &customer.id, &first.id, actor, change.clone()).await;
            assert_eq!(outcome, KeyChanged::FirstKey, "{change:?}");
        }
        let outcome = store.change_key(&customer.id, &first.id, actor, KeyChange::Revoke, NOON).await.unwrap();
        assert_eq!(outcome, KeyChanged::FirstKey);
        let limit = Some(Some(atoms(2 * BASE)));
        let set = TermsChange { limit, requests_per_day: Some(9), ..NO_CHANGE() };
        let key = changed(try_change(&*store, &customer.id, &first.id, actor, set).await);
        assert_eq!((key.terms.budget, key.terms.limits.requests_per_day), (budget(2 * BASE, None), 9));
        let removed = TermsChange { limit: Some(None), requests_per_day: Some(0), ..NO_CHANGE() };
        let key = changed(try_change(&*store, &customer.id, &first.id, actor, removed).await);
        assert_eq!(key.terms, KeyTerms::first());
    }
}

/// A key that changes itself may only narrow its terms: it keeps its budget, the budget's period, and its limits.
pub async fn key_may_only_narrow_itself(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let terms = KeyTerms {
        limits: RateLimits::per_minute(5).and_per_day(50),
        max_in_flight: 4,
        budget: budget(100, Some(BudgetReset::Daily)),
        routes: "/a\n/b".parse().unwrap(),
        scopes: Scopes::of([Scope::Call, Scope::Manage]).unwrap(),
        ..manager()
    };
    let key = issue(&*store, &customer.id, None, terms).await;
    let wider = [
        (TermsChange { scopes: Some(Scopes::ALL), ..NO_CHANGE() }, WiderTerms::Scopes),
        (TermsChange { routes: "/c".parse().ok(), ..NO_CHANGE() }, WiderTerms::Routes),
        (TermsChange { limit: Some(Some(atoms(101))), ..NO_CHANGE() }, WiderTerms::Limit),
        (TermsChange { requests_per_minute: Some(6), ..NO_CHANGE() }, WiderTerms::RequestsPerMinute),
    ];
    for (change, expected) in wider {
        let outcome = try_change(&*store, &customer.id, &key.id, Some(&key.id), change.clone()).await;
        assert_eq!(outcome, KeyChanged::Wider(expected), "{change:?}");
        let by_operator = try_change(&*store, &customer.id, &key.id, None, change.clone()).await;
        assert!(matches!(by_operator, KeyChanged::Key(_)), "{change:?}: {by_operator:?}");
        let back = TermsChange {
            scopes: Scopes::of([Scope::Call, Scope::Manage]).ok(),
            routes: "/a\n/b".parse().ok(),
            limit: Some(Some(atoms(100))),
            requests_per_minute: Some(5),
            ..NO_CHANGE()
        };
        super::key_scene::change(&*store, &customer.id, &key.id, back).await;
    }
    let narrower = TermsChange {
        limit: Some(Some(atoms(10))),
        routes: "/a".parse().ok(),
        max_in_flight: Some(1),
        requests_per_minute: Some(2),
        ..NO_CHANGE()
    };
    let found = changed(try_change(&*store, &customer.id, &key.id, Some(&key.id), narrower).await);
    assert_eq!((found.terms.budget, found.terms.max_in_flight), (budget(10, Some(BudgetReset::Daily)), 1));
}

/// A rotation replaces the secret; the key keeps its id, terms and usage. The old secret works until its grace ends.
pub async fn rotated_key_keeps_all_but_its_secret(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let key = issue(&*store, &customer.id, None, KeyTerms { budget: budget(9 * BASE, None), ..caller() }).await;
    accepted(&*store, charge(key.secret, BASE), NOON).await;
    let before = status(&*store, &customer.id, &key.id, NOON).await;
    let until = NOON.saturating_add(DAY);
    let (second, third) = (new_key(), new_key());
    let rotate = |secret, old_until| {
        let (store, account, id) = (&store, &customer.id, &key.id);
        async move { store.change_key(account, id, None, KeyChange::Rotate { secret, old_until }, NOON).await }
    };
    let rotated = Key { hint: second.hint(), ..before.key.clone() };
    assert_ne!(rotated, before.key, "the end of its secret is shown");
    assert_eq!(changed(rotate(second, Some(until)).await.unwrap()), rotated);
    let after = KeyStatus { key: rotated.clone(), ..before };
    assert_eq!(status(&*store, &customer.id, &key.id, NOON).await, after);
    let just_before = until.saturating_sub(std::time::Duration::from_millis(1));
    assert_eq!(store.live_keys(&[key.secret, second], NOON).await.unwrap(), [true, true]);
    assert_eq!(store.live_keys(&[key.secret, second], just_before).await.unwrap(), [true, true]);
    assert_eq!(store.live_keys(&[key.secret, second], until).await.unwrap(), [false, true]);
    let old = store.key_holder(&key.secret).await.unwrap().expect("the secret still works");
    assert_eq!((old.secret_expires_at, old.key()), (Some(until), Some(&rotated)));
    assert_eq!(accepted(&*store, charge(key.secret, BASE), just_before).await.key, key.number);
    assert_eq!(refused(&*store, charge(key.secret, BASE), until).await, Refusal::UnknownKey);
    assert_eq!(accepted(&*store, charge(second, BASE), until).await.key, key.number);
    // A longer grace does not prolong that of an older secret.
    changed(rotate(third, Some(until.saturating_add(DAY))).await.unwrap());
    assert_eq!(store.live_keys(&[key.secret, second, third], until).await.unwrap(), [false, true, true]);
    for secret in [key.secret, second, third, customer.key] {
        assert_eq!(rotate(secret, None).await.unwrap(), KeyChanged::SecretUsed, "a secret that is in use");
    }
    let last = new_key();
    changed(rotate(last, None).await.unwrap());
    assert_eq!(store.live_keys(&[key.secret, second, third, last], NOON).await.unwrap(), [false, false, false, true]);
    assert_eq!(accepted(&*store, charge(last, 6 * BASE), NOON).await.key, key.number);
    let refusal = refused(&*store, charge(last, BASE), NOON).await;
    assert!(matches!(refusal, Refusal::KeyBudget { .. }), "{refusal:?}");
}

/// The holder of a secret replaces it for its own key, and no other.
pub async fn replaced_secret_belongs_to_its_key(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let (key, sibling) =
        (issue(&*store, &customer.id, None, caller()).await, issue(&*store, &customer.id, None, manager()).await);
    let secret = new_key();
    store.replace_live_key(&key.secret, secret, NOON).await.unwrap().expect("the secret works");
    let live = store.live_keys(&[key.secret, secret, sibling.secret, customer.key], NOON).await.unwrap();
    assert_eq!(live, [false, true, true, true]);
    assert_eq!(accepted(&*store, charge(secret, BASE), NOON).await.key, key.number);
    let disabled = TermsChange { disabled: Some(true), ..NO_CHANGE() };
    change(&*store, &customer.id, &key.id, disabled).await;
    assert_eq!(store.replace_live_key(&secret, new_key(), NOON).await.unwrap(), None, "the key is disabled");
    assert_eq!(number_of_keys(&*store, &customer).await, 3, "a new secret makes no new key");
}
