//! Holds in the books: verification, budgets, lists, expiry and export.

use std::time::Duration;

use metering_core::access::{Budget, KeyId, KeyTerms, Scopes};
use metering_core::charging::HoldAction;
use metering_core::store::{HoldStore, KeyChange, KeyCreated, KeyStore, NewKey, TermsChange};
use metering_core::{AccountId, RequestId, Store};
use metering_sql::transfer::{Record, Section};
use metering_sqlite::SqliteStore;

use super::{act, assert_sound, at, calls, capture, charge_of, hold_of, id_of, numbers, open, post, update};
use crate::scene::{NOON, account, assert_corrupt, created, execute, new_key, records};

/// An amount of an account, what is recorded and what was computed, in base calls.
type Wrong = (&'static str, i64, i64);

#[tokio::test]
async fn tampered_holds_are_discrepancies() {
    // damage, what is wrong
    let table: [(&str, &[Wrong]); 5] = [
        ("UPDATE meter SET held = held + 1000000", &[("held", 8, 7)]),
        ("UPDATE hold SET amount = 2000000 WHERE amount = 3000000", &[("balance", 92, 93), ("held", 7, 6)]),
        ("DELETE FROM hold WHERE amount = 4000000", &[("balance", 92, 96), ("held", 7, 3)]),
        (
            "UPDATE hold SET captured = 0, reason = 'release', settled_at = 1 WHERE amount = 4000000",
            &[("balance", 92, 96), ("held", 7, 3)],
        ),
        (
            "UPDATE hold SET captured = NULL, reason = NULL, settled_at = NULL WHERE amount = 5000000",
            &[("balance", 92, 87), ("held", 7, 12)],
        ),
    ];
    for (damage, expected) in table {
        let (_folder, file, store) = created();
        let (id, key) = account(&store, 100).await;
        for (number, count) in [(1, 3), (2, 4), (3, 5)] {
            open(&store, key, count, number).await;
        }
        act(&store, &id, 3, capture(1)).await;
        assert_sound(&store).await;
        execute(&file, damage);
        let found = store.verify().await.unwrap().discrepancies;
        let found: Vec<_> = found.iter().map(|found| (found.amount, found.recorded, found.computed)).collect();
        let expected: Vec<_> =
            expected.iter().map(|(amount, recorded, computed)| (*amount, calls(*recorded), calls(*computed))).collect();
        assert_eq!(found, expected, "{damage}");
    }
}

#[tokio::test]
async fn holds_that_belong_to_nothing_are_detected() {
    for damage in ["account = 99", "key = 9", "line = 9"] {
        let (_folder, file, store) = created();
        let (_, key) = account(&store, 100).await;
        open(&store, key, 3, 1).await;
        execute(&file, &format!("PRAGMA foreign_keys = off; UPDATE hold SET {damage}"));
        assert_corrupt(&store, "1 holds belong to no key or usage line", damage).await;
    }
}

#[tokio::test]
async fn open_holds_are_newest_first_and_expired_ones_by_their_lease() {
    let (_folder, _, store) = created();
    let (id, key) = account(&store, 100).await;
    let (other, other_key) = account(&store, 100).await;
    // number, opened, lease, in seconds
    for (number, opened, lease) in [(5, 0, 100), (3, 1, 40), (4, 1, 20), (1, 2, 39), (2, 3, 1_000)] {
        let mut charge = hold_of(if number == 4 { other_key } else { key }, 1, number);
        charge.hold.as_mut().unwrap().lease = Duration::from_secs(lease);
        post(&store, charge, at(opened)).await.unwrap();
    }
    let open = async |id: &AccountId, limit| numbers(&store.open_holds(id, limit).await.unwrap());
    assert_eq!(
        (open(&id, 9).await, open(&id, 2).await, open(&other, 9).await),
        (vec![2, 1, 3, 5], vec![2, 1], vec![4])
    );
    let expired = async |second, limit| numbers(&store.expired_holds(at(second), limit).await.unwrap());
    assert_eq!((expired(20, 9).await, expired(21, 9).await, expired(40, 9).await), (vec![], vec![4], vec![4]));
    // Leases that end at the same time are sorted by id.
    assert_eq!((expired(41, 9).await, expired(41, 2).await), (vec![4, 1, 3], vec![4, 1]));
    assert_eq!(expired(10_000, 9).await, [4, 1, 3, 5, 2]);
    store.commit(vec![update(&other, 4, HoldAction::Expire), update(&id, 2, capture(1))], at(41)).await.unwrap();
    assert_eq!(expired(10_000, 9).await, [1, 3, 5]);
    assert_eq!((open(&id, 9).await, open(&other, 9).await), (vec![1, 3, 5], vec![]));
    store.revoke_account(&id, at(50)).await.unwrap();
    assert_eq!(expired(10_000, 9).await, [1, 3, 5], "those of a revoked account too");
}

async fn make_key(store: &SqliteStore, account: &AccountId, parent: Option<KeyId>) -> (KeyId, [u8; 32]) {
    let (secret, terms) = (new_key(), KeyTerms::new("made".parse().unwrap(), Scopes::ALL));
    let new = NewKey { account: account.clone(), parent, secret, terms, max_keys: 9, created_at: NOON };
    let created = store.create_key(new).await.unwrap();
    let KeyCreated::Key(key) = created else { panic!("{created:?}") };
    (key.id, *secret.as_bytes())
}

/// The usage of the key itself and its child keys, since the period's first day.
#[tokio::test]
async fn a_budget_set_later_starts_with_what_is_held() {
    let (_folder, file, store) = created();
    let (id, first) = account(&store, 1_000).await;
    let (top, top_secret) = make_key(&store, &id, None).await;
    let (_, below) = make_key(&store, &id, Some(top.clone())).await;
    let [top_secret, below] = [top_secret, below].map(metering_core::access::KeyHash::from_bytes);
    let yesterday = NOON.saturating_sub(Duration::from_secs(86_400));
    // key, when, held
    for (number, (key, when, held)) in
        (1..).zip([(first, NOON, 1), (top_secret, NOON, 2), (below, NOON, 4), (below, yesterday, 8)])
    {
        post(&store, hold_of(key, held, number), when).await.unwrap();
    }
    post(&store, charge_of(below, 16), NOON).await.unwrap();
    let spent = async || {
        let status = store.key(&id, &top, NOON.day()).await.unwrap().unwrap();
        status.spent.unwrap().amount
    };
    // reset, spent
    for (reset, expected) in [("daily", 22), ("monthly", 30)] {
        let limit = Some(Some(calls(100)));
        let change = TermsChange { limit, limit_reset: Some(Some(reset.parse().unwrap())), ..TermsChange::default() };
        let change = KeyChange::Terms(Box::new(change));
        store.change_key(&id, &top, None, change, NOON).await.unwrap();
        assert_eq!(spent().await, calls(expected), "{reset}");
        assert_sound(&store).await;
    }
    // The uncaptured part returns to the budget, and a discrepancy is found in either form.
    execute(&file, "UPDATE key_meter SET spent = spent - 1");
    let found = store.verify().await.unwrap().restarted_budgets;
    assert_eq!(
        found.iter().map(|found| (found.amount, found.computed)).collect::<Vec<_>>(),
        [("key_spent", calls(30))]
    );
    execute(&file, "UPDATE key_meter SET spent = spent + 1");
    act(&store, &id, 3, capture(1)).await;
    act(&store, &id, 4, HoldAction::Release).await;
    assert_eq!(spent().await, calls(19));
    assert_sound(&store).await;
    let budget = Budget { limit: calls(100), reset: Some("monthly".parse().unwrap()) };
    assert_eq!(store.key(&id, &top, NOON.day()).await.unwrap().unwrap().key.terms.budget, Some(budget));
}

#[tokio::test]
async fn export_has_holds_and_what_they_changed() {
    let (_folder, _, store) = created();
    let (id, key) = account(&store, 100).await;
    for (number, count) in [(7, 3), (1, 4), (4, 5)] {
        let request_id = (number == 4).then(|| RequestId::parse("once").unwrap());
        post(&store, hold_of(key, count, number).with_request_id(request_id), NOON).await.unwrap();
    }
    act(&store, &id, 1, HoldAction::Release).await;
    act(&store, &id, 7, capture(2)).await;
    let holds: Vec<_> = records(&store, Section::Holds, 1).await;
    let mut expected = Vec::new();
    for number in [1, 4, 7] {
        expected.push(Record::Hold(Box::new(store.hold(&id_of(number)).await.unwrap().unwrap())));
    }
    assert_eq!(holds, expected, "by their ids");
    let [Record::Account(account)] = &records(&store, Section::Accounts, 1).await[..] else { panic!("one account") };
    let totals = account.account.totals;
    assert_eq!((totals.balance, totals.held, totals.used), (calls(93), calls(5), calls(2)));
    assert_eq!((account.minute.count, account.day.count, account.entries), (3, 3, 3));
    let [Record::Idempotency(result)] = &records(&store, Section::Idempotency, 1).await[..] else {
        panic!("one result")
    };
    assert_eq!((result.result.hold, result.result.charged), (Some(id_of(4)), calls(5)));
    let activity = records(&store, Section::Activity, 1).await;
    let kinds = activity.iter().map(|record| match record {
        Record::Activity(activity) => (format!("{:?}", activity.kind), activity.amount),
        other => panic!("{other:?}"),
    });
    assert_eq!(kinds.collect::<Vec<_>>(), [("Released".to_owned(), calls(0)), ("Charged".to_owned(), calls(-2))]);
}
