//! Contracts for keys: what they may be used for, and what is recorded of them.

use std::sync::Arc;
use std::time::Duration;

use metering_core::Refusal;
use metering_core::access::{Key, KeyHash, KeyName, KeyNumber, KeyRefusal, KeyTerms, KeyUsage, Scope, Scopes};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::store::{Cursor, KeyChange, Store, StoreError, TermsChange};
use metering_core::usage::{ActivityKind, KeyLabel, KeyTotal};

use super::key_scene::{caller, change, changed, create_key, first, issue, manager, new_key_of, revoke, status};
use super::scene::{
    ALWAYS, BASE, DAY, NOON, Verified, accepted, all_daily_totals, atoms, balance, charge, commit, commit_refund,
    customer, new_id, new_key, paged, refused, report,
};

/// An account starts with one key, which may do everything.
pub async fn first_key_has_all_scopes(store: Arc<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let page = store.keys(&customer.id, None, 10, NOON.day()).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
    let key = &page.items[0].key;
    assert_eq!((key.number, key.parent, &key.terms), (KeyNumber::FIRST, None, &KeyTerms::first()));
    assert_eq!((&key.account, key.created_at, key.is_live()), (&customer.id, NOON, true));
    let holder = store.key_holder(&customer.key).await.unwrap().expect("the secret works");
    assert_eq!((holder.key(), holder.chain.len(), holder.secret_expires_at), (Some(key), 1, None));
    assert_eq!(store.keys(&new_id(), None, 10, NOON.day()).await.unwrap().items, []);
    assert_eq!(store.key(&new_id(), &key.id, NOON.day()).await.unwrap(), None);
}

/// A key shows the end of its newest secret, no matter how it got that secret and what else changes.
pub async fn keys_show_the_end_of_their_newest_secret(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let (first, child) = (first(&*store, &customer).await, issue(&*store, &customer.id, None, caller()).await);
    let hints = || {
        let (store, id) = (&store, &customer.id);
        async move {
            let listed = store.keys(id, None, 10, NOON.day()).await.unwrap().items;
            listed.iter().map(|status| status.key.hint.expect("there is one")).collect::<Vec<_>>()
        }
    };
    let of = |secrets: [KeyHash; 2]| secrets.map(|secret| secret.hint().unwrap()).to_vec();
    assert_eq!(hints().await, of([first.secret, child.secret]));
    let holder = store.key_holder(&child.secret).await.unwrap().expect("the secret works");
    assert_eq!(holder.key().unwrap().hint, child.secret.hint());
    change(&*store, &customer.id, &child.id, TermsChange { disabled: Some(true), ..TermsChange::default() }).await;
    change(&*store, &customer.id, &child.id, TermsChange { disabled: Some(false), ..TermsChange::default() }).await;
    assert_eq!(hints().await, of([first.secret, child.secret]));
    let [rotated, replaced, recovered] = [new_key(), new_key(), new_key()];
    let rotation = KeyChange::Rotate { secret: rotated, old_until: Some(NOON.saturating_add(DAY)) };
    changed(store.change_key(&customer.id, &child.id, None, rotation, NOON).await.unwrap());
    assert_eq!(hints().await, of([first.secret, rotated]));
    store.replace_live_key(&rotated, replaced, NOON).await.unwrap().expect("the secret works");
    store.replace_key(&customer.id, recovered, NOON).await.unwrap().expect("the account is live");
    assert_eq!(hints().await, of([recovered, replaced]));
}

/// A created key charges its account, and is found with all its fields.
pub async fn created_key_charges_its_account(store: Verified<dyn Store>) {
    let (owner, other) = (customer(&*store, 10 * BASE).await, customer(&*store, BASE).await);
    let terms = KeyTerms {
        routes: "GET /mpp/*\n/other".parse().unwrap(),
        networks: "10.0.0.0/8 2001:db8::/32".parse().unwrap(),
        expires_at: Some(NOON.saturating_add(DAY)),
        max_in_flight: 7,
        ..manager()
    };
    let new = new_key_of(&owner.id, None, terms.clone());
    let secret = new.secret;
    let key = create_key(&*store, new).await;
    assert_eq!((key.number, key.parent, &key.terms), (KeyNumber::new(1), Some(KeyNumber::FIRST), &terms));
    assert_eq!((key.created_at, key.leaked_at, key.revoked_at), (NOON, None, None));
    let found = status(&*store, &owner.id, &key.id, NOON).await;
    assert_eq!((&found.key, found.parents_are_live, found.spent), (&key, true, None));
    assert_eq!(store.key(&other.id, &key.id, NOON.day()).await.unwrap(), None, "another account's");
    let holder = store.key_holder(&secret).await.unwrap().expect("the secret works");
    assert_eq!(holder.account.id, owner.id);
    let chain: Vec<_> = holder.chain.iter().map(|key| key.number.get()).collect();
    assert_eq!(chain, [1, 0]);
    assert_eq!(store.live_keys(&[secret, owner.key, new_key()], NOON).await.unwrap(), [true, true, false]);
    let address = "10.1.2.3".parse().ok();
    let receipt = accepted(&*store, charge(secret, BASE).with_address(address), NOON).await;
    assert_eq!((receipt.account, receipt.key, receipt.balance), (owner.id.clone(), key.number, atoms(9 * BASE)));
    assert_eq!(balance(&*store, &owner.id).await, 9 * BASE);
}

/// Keys are listed in the order of creation, and revoked ones are left out. Another text than a cursor is an error.
pub async fn keys_are_paged_by_creation(store: Arc<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    for _ in 0..6 {
        issue(&*store, &customer.id, None, caller()).await;
    }
    let all = store.keys(&customer.id, None, 100, NOON.day()).await.unwrap().items;
    revoke(&*store, &customer.id, &all[3].key.id).await;
    for limit in [1, 2, 3, 5, 6, 100] {
        let found = paged(limit, async |after, limit| store.keys(&customer.id, after, limit, NOON.day()).await).await;
        let numbers: Vec<_> = found.iter().map(|status| status.key.number.get()).collect();
        assert_eq!(numbers, [0, 1, 2, 4, 5, 6], "limit {limit}");
    }
    for text in ["", "x", "1;2", "key_0123456789abcdef0123"] {
        let result = store.keys(&customer.id, Some(&Cursor::new(text)), 5, NOON.day()).await;
        assert!(matches!(result, Err(StoreError::UnknownCursor)), "{text:?}: {result:?}");
    }
}

/// Usage is that of the key alone, in the periods of the requested day, minus refunds.
pub async fn usage_of_a_key_is_its_own(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1_000_000).await;
    let parent = issue(&*store, &customer.id, None, manager()).await;
    let child = issue(&*store, &customer.id, Some(&parent), caller()).await;
    // A Saturday. Its week began five days earlier, and its month twenty.
    let at = |days_ago: u32| NOON.saturating_sub(DAY * days_ago);
    for (days_ago, price) in [(21, 10_000), (20, 1_000), (6, 100), (5, 10), (0, 1)] {
        accepted(&*store, charge(parent.secret, price), at(days_ago)).await;
        accepted(&*store, charge(child.secret, 5 * price), at(days_ago)).await;
    }
    let refunded = accepted(&*store, charge(parent.secret, 70), NOON).await;
    commit_refund(&*store, refunded.into_refund().unwrap(), NOON.saturating_add(DAY)).await.unwrap();
    let usage = |sums: [i64; 4], last_used: Timestamp| {
        let [total, daily, weekly, monthly] = sums.map(atoms);
        KeyUsage { total, daily, weekly, monthly, last_used: Some(last_used.day()) }
    };
    let sums = [11_111, 1, 11, 1_111];
    assert_eq!(status(&*store, &customer.id, &parent.id, NOON).await.usage, usage(sums, NOON));
    let of_child = status(&*store, &customer.id, &child.id, NOON).await.usage;
    assert_eq!(of_child, usage(sums.map(|sum| 5 * sum), NOON));
    let listed = store.keys(&customer.id, None, 10, NOON.day()).await.unwrap().items;
    assert_eq!(listed[0].usage, KeyUsage::default(), "the first key was not used");
    assert_eq!((listed[1].usage, listed[2].usage), (usage(sums, NOON), of_child));
    let next_month = "2026-12-01".parse().unwrap();
    let later = store.key(&customer.id, &parent.id, next_month).await.unwrap().unwrap();
    assert_eq!(later.usage, usage([11_111, 0, 0, 0], NOON));
}

/// Reports, daily totals and activity name the key of each request.
pub async fn usage_is_recorded_by_key(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let child = issue(&*store, &customer.id, None, caller()).await;
    let batch = vec![charge(child.secret, 3 * BASE), charge(customer.key, BASE), charge(child.secret, 4 * BASE)];
    commit(&*store, batch, NOON).await;
    let receipt = accepted(&*store, charge(child.secret, 2 * BASE), NOON).await;
    commit_refund(&*store, receipt.into_refund().unwrap(), NOON).await.unwrap();
    let total = |key, call_count, used| KeyTotal { key, call_count, credits_used: atoms(used) };
    let by_key = report(&*store, &customer.id, ALWAYS).await.by_key;
    assert_eq!(by_key, [total(child.number, 3, 7 * BASE), total(KeyNumber::FIRST, 1, BASE)]);
    let daily = store.account_daily_totals(&customer.id, ALWAYS).await.unwrap();
    assert_eq!(daily, all_daily_totals(&*store).await);
    let mut rows: Vec<_> = daily.iter().map(|total| (total.key, total.calls, total.credits_used)).collect();
    rows.sort_unstable();
    assert_eq!(rows, [(KeyNumber::FIRST, 1, atoms(BASE)), (child.number, 3, atoms(7 * BASE))]);
    let mut found: Vec<_> = Vec::new();
    for entry in store.activity(&customer.id, 100).await.unwrap() {
        match entry.kind {
            ActivityKind::Ledger(_) => assert_eq!(entry.key, None),
            kind => found.push((kind.as_str(), entry.key.expect("usage has a key"), entry.calls, entry.amount.atoms())),
        }
    }
    let sum = |kind: &str, key: KeyNumber| {
        let of_key = found.iter().filter(|entry| (entry.0, entry.1) == (kind, key));
        of_key.fold((0, 0), |sum, entry| (sum.0 + entry.2, sum.1 + entry.3))
    };
    assert_eq!(sum("usage", child.number), (3, -9 * BASE));
    assert_eq!(sum("usage_refund", child.number), (1, 2 * BASE));
    assert_eq!(sum("usage", KeyNumber::FIRST), (1, -BASE));
}

/// A request that the terms do not allow is refused with the reason, and changes nothing.
pub async fn terms_refuse_with_the_reason(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    let expiry = NOON.saturating_add(DAY);
    let reader = KeyTerms { scopes: Scopes::of([Scope::Read, Scope::TopUp]).unwrap(), ..caller() };
    let elsewhere = KeyTerms { routes: "POST /mpp/ethPrice\n/other".parse().unwrap(), ..caller() };
    let office = KeyTerms { networks: "10.0.0.0/8".parse().unwrap(), ..caller() };
    let expiring = KeyTerms { expires_at: Some(expiry), ..caller() };
    let (outside, inside) = ("192.0.2.1".parse().ok(), "10.9.8.7".parse().ok());
    // terms, address, time, refusal
    let table = [
        (&reader, None, NOON, Some(KeyRefusal::Scope { scope: Scope::Call })),
        (&elsewhere, None, NOON, Some(KeyRefusal::Route)),
        (&office, outside, NOON, Some(KeyRefusal::Network { address: outside })),
        (&office, None, NOON, Some(KeyRefusal::Network { address: None })),
        (&office, inside, NOON, None),
        (&expiring, None, expiry, Some(KeyRefusal::Expired { at: expiry })),
        (&expiring, None, expiry.saturating_sub(Duration::from_millis(1)), None),
    ];
    for (terms, address, at, expected) in table {
        let key = issue(&*store, &customer.id, None, terms.clone()).await;
        let before = balance(&*store, &customer.id).await;
        let request = charge(key.secret, BASE).with_address(address);
        match expected {
            None => assert_eq!(accepted(&*store, request, at).await.balance.atoms(), before - BASE),
            Some(reason) => {
                assert_eq!(refused(&*store, request, at).await, Refusal::Key(reason), "{terms:?}");
                assert_eq!(balance(&*store, &customer.id).await, before);
                let usage = status(&*store, &customer.id, &key.id, at).await.usage;
                assert_eq!((usage.total, usage.last_used), (Credits::ZERO, None));
            }
        }
    }
}

/// A key that is disabled, revoked or leaked is refused like one that never existed.
pub async fn key_that_is_not_live_is_unknown(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100 * BASE).await;
    for what in ["disabled", "revoked", "leaked"] {
        let key = issue(&*store, &customer.id, None, caller()).await;
        accepted(&*store, charge(key.secret, BASE), NOON).await;
        let changed: Key = match what {
            "disabled" => {
                let disabled = TermsChange { disabled: Some(true), ..TermsChange::default() };
                change(&*store, &customer.id, &key.id, disabled).await
            }
            "revoked" => revoke(&*store, &customer.id, &key.id).await,
            _ => store.report_leaked(&key.secret, NOON).await.unwrap().expect("the secret works"),
        };
        assert!(!changed.is_live(), "{what}");
        assert_eq!(status(&*store, &customer.id, &key.id, NOON).await.key, changed, "{what}");
        assert_eq!(refused(&*store, charge(key.secret, BASE), NOON).await, Refusal::UnknownKey, "{what}");
        assert_eq!(store.live_keys(&[key.secret, customer.key], NOON).await.unwrap(), [false, true], "{what}");
        let is_found = store.key_holder(&key.secret).await.unwrap().is_some();
        assert_eq!(is_found, what == "disabled", "a secret of a disabled key still belongs to it");
    }
    let enabled = TermsChange { disabled: Some(false), ..TermsChange::default() };
    let keys = store.keys(&customer.id, None, 10, NOON.day()).await.unwrap().items;
    let disabled = keys.iter().find(|status| status.key.terms.disabled).expect("one is disabled");
    assert!(change(&*store, &customer.id, &disabled.key.id, enabled).await.is_live());
}

/// Reports can name every key that an account ever had.
pub async fn labels_include_revoked_keys(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let first = first(&*store, &customer).await;
    let mut expected = vec![KeyLabel { number: first.number, parent: None, id: first.id, name: KeyName::first() }];
    for name in ["one", "two", "Grüße 😀"] {
        let terms = KeyTerms { name: name.parse().unwrap(), ..caller() };
        let key = issue(&*store, &customer.id, None, terms).await;
        expected.push(KeyLabel {
            number: key.number,
            parent: Some(first.number),
            id: key.id,
            name: name.parse().unwrap(),
        });
    }
    revoke(&*store, &customer.id, &expected[2].id).await;
    let renamed = TermsChange { name: Some("renamed".parse().unwrap()), ..TermsChange::default() };
    change(&*store, &customer.id, &expected[1].id, renamed).await;
    expected[1].name = "renamed".parse().unwrap();
    assert_eq!(store.key_labels(&customer.id).await.unwrap(), expected);
    assert_eq!(store.key_labels(&new_id()).await.unwrap(), []);
}
