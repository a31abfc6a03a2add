//! Contracts for creating and finding accounts.

use std::sync::Arc;

use metering_core::Refusal;
use metering_core::access::{Account, Payer, RateLimits, Totals};
use metering_core::chains::Address;
use metering_core::clock::Timestamp;
use metering_core::money::{Credits, LedgerKind};
use metering_core::store::{Created, NewAccount, Posted, Store};

use super::scene::{
    ALWAYS, BASE, NOON, account, adjustment, atoms, charge, create, customer, entry, new_account, new_id, new_key,
    refused,
};

/// A new account has the fields it was created with, in every kind of lookup.
pub async fn a_new_account_is_found_as_it_was_made(store: Arc<dyn Store>) {
    let payer = Some(Payer { address: Address::from_bytes([0xAB; 20]), chain_id: 8453 });
    let limits = RateLimits::per_minute(7).and_per_day(u32::MAX);
    let new = NewAccount {
        agent_name: "My-agent_01".parse().unwrap(),
        email: Some("Jörg+1@Example.com".parse().unwrap()),
        payer,
        limits,
        entries: vec![adjustment(3)],
        ..new_account()
    };
    let mut expected = Account::new(new.id.clone(), new.agent_name.clone(), NOON);
    expected.email = new.email.clone();
    expected.payer = payer;
    expected.limits = limits;
    expected.totals = Totals { balance: atoms(3), granted: atoms(3), ..Totals::default() };
    let key = new.key;
    let created = create(&*store, new).await;
    assert_eq!(created, expected);
    assert_eq!(account(&*store, &expected.id).await, expected);
    assert_eq!(store.account_by_key(&key).await.unwrap(), Some(expected.clone()));
    let page = store.accounts(None, 10).await.unwrap();
    assert_eq!((page.items, page.next), (vec![expected.clone()], None));
    // Emails are compared case-insensitively, but the store keeps the exact text.
    let found = account(&*store, &expected.id).await.email.unwrap();
    assert_eq!(found.as_str(), "Jörg+1@Example.com");
}

/// An account created without optional fields has none of them.
pub async fn account_without_entries_has_no_credits(store: Arc<dyn Store>) {
    let new = new_account();
    let id = new.id.clone();
    create(&*store, new).await;
    let found = account(&*store, &id).await;
    assert_eq!((found.email, found.payer, found.revoked_at), (None, None, None));
    assert_eq!((found.totals, found.limits), (Totals::default(), RateLimits::NONE));
    assert_eq!(store.activity(&id, 10).await.unwrap(), []);
    assert_eq!(store.ledger(None, 10).await.unwrap().items, []);
}

/// Every operation on an account that does not exist reports that.
pub async fn unknown_account_is_none(store: Arc<dyn Store>) {
    customer(&*store, BASE).await;
    let (id, key) = (new_id(), new_key());
    assert_eq!(store.account(&id).await.unwrap(), None);
    assert_eq!(store.account_by_key(&key).await.unwrap(), None);
    assert_eq!(store.set_limits(&id, RateLimits::NONE).await.unwrap(), None);
    assert_eq!(store.revoke_account(&id, NOON).await.unwrap(), None);
    assert_eq!(store.replace_key(&id, key, NOON).await.unwrap(), None);
    assert_eq!(store.usage_report(&id, ALWAYS).await.unwrap(), None);
    assert_eq!(store.activity(&id, 10).await.unwrap(), []);
    assert_eq!(store.post_entry(&id, adjustment(1), NOON).await.unwrap(), Posted::NoSuchAccount);
    assert_eq!(store.ledger(None, 10).await.unwrap().items.len(), 1, "nothing was written");
    assert_eq!(store.accounts(None, 10).await.unwrap().items.len(), 1, "no account was created");
    assert_eq!(store.live_keys(&[key], NOON).await.unwrap(), [false]);
}

/// An account's first entries add up to its first totals, by kind.
pub async fn first_entries_add_up_to_the_first_totals(store: Arc<dyn Store>) {
    let entries = vec![
        entry(LedgerKind::PurchasePaySignup, 500),
        entry(LedgerKind::SignupBonus, 40),
        entry(LedgerKind::PurchaseTopup, 6),
        entry(LedgerKind::Adjustment, -3),
    ];
    let created = create(&*store, NewAccount { entries: entries.clone(), ..new_account() }).await;
    let expected = Totals {
        balance: atoms(543),
        purchased: atoms(506),
        granted: atoms(37),
        used: Credits::ZERO,
        held: Credits::ZERO,
    };
    assert_eq!(created.totals, expected);
    assert_eq!(account(&*store, &created.id).await.totals, expected);
    let written = store.ledger(None, 10).await.unwrap().items;
    let as_new = written.iter().map(|entry| (entry.kind, entry.amount, entry.description.as_str()));
    assert!(as_new.eq(entries.iter().map(|entry| (entry.kind, entry.amount, entry.description.as_str()))));
    assert!(written.iter().all(|entry| entry.account == created.id && entry.created_at == NOON));
}

/// An account whose first entries are out of range is not created.
pub async fn out_of_range_first_entries_create_no_account(store: Arc<dyn Store>) {
    let table = [
        [entry(LedgerKind::PurchasePaySignup, i64::MAX), entry(LedgerKind::SignupBonus, 1)],
        [entry(LedgerKind::PurchasePaySignup, i64::MAX), entry(LedgerKind::PurchaseTopup, 1)],
        [adjustment(i64::MIN), adjustment(-1)],
    ];
    for entries in table {
        let new =
            NewAccount { email: Some("a@example.com".parse().unwrap()), entries: entries.to_vec(), ..new_account() };
        assert_eq!(store.create_account(new.clone()).await.unwrap(), Created::OutOfRange, "{entries:?}");
        assert_eq!(store.account(&new.id).await.unwrap(), None);
        assert_eq!(refused(&*store, charge(new.key, BASE), NOON).await, Refusal::UnknownKey);
        assert_eq!(store.ledger(None, 10).await.unwrap().items, []);
        assert_eq!(store.accounts(None, 10).await.unwrap().items, []);
    }
    // The email, the id and the key are still free.
    create(&*store, NewAccount { email: Some("a@example.com".parse().unwrap()), ..new_account() }).await;
}

/// The largest and smallest amounts are stored exactly.
pub async fn smallest_and_largest_amounts_are_stored(store: Arc<dyn Store>) {
    for amount in [i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1, -1, (1 << 53) + 1] {
        let created = create(&*store, NewAccount { entries: vec![adjustment(amount)], ..new_account() }).await;
        let found = account(&*store, &created.id).await;
        assert_eq!((found.totals.balance.atoms(), found.totals.granted.atoms()), (amount, amount));
    }
    super::scene::assert_verified(&*store).await;
}

/// An account with an id or key that is or was in use is not created.
pub async fn id_or_key_in_use_creates_no_account(store: Arc<dyn Store>) {
    let first = customer(&*store, BASE).await;
    let new_key = new_key();
    store.replace_key(&first.id, new_key, NOON).await.unwrap().expect("the account is live");
    let revoked = customer(&*store, BASE).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let fresh = || NewAccount { entries: vec![adjustment(1)], ..new_account() };
    let table = [
        ("id", NewAccount { id: first.id.clone(), ..fresh() }),
        ("id of a revoked account", NewAccount { id: revoked.id.clone(), ..fresh() }),
        ("live key", NewAccount { key: new_key, ..fresh() }),
        ("replaced key", NewAccount { key: first.key, ..fresh() }),
        ("revoked key", NewAccount { key: revoked.key, ..fresh() }),
    ];
    for (what, new) in table {
        assert!(store.create_account(new).await.is_err(), "{what}");
        assert_eq!(store.accounts(None, 10).await.unwrap().items.len(), 2, "{what}");
        assert_eq!(store.ledger(None, 10).await.unwrap().items.len(), 2, "{what}");
    }
    assert_eq!(store.account_by_key(&new_key).await.unwrap().unwrap().id, first.id);
    assert_eq!(store.live_keys(&[first.key, revoked.key], NOON).await.unwrap(), [false, false]);
}

/// Times are stored to the millisecond.
pub async fn times_are_stored_to_the_millisecond(store: Arc<dyn Store>) {
    let table = [0, 1, 999, 1_795_262_400_001, 1_795_262_399_999, -1, 253_402_300_799_999];
    for millis in table {
        let at = Timestamp::from_unix_millis(millis);
        let new = NewAccount { created_at: at, entries: vec![adjustment(1)], ..new_account() };
        let created = create(&*store, new).await;
        assert_eq!(account(&*store, &created.id).await.created_at, at);
        assert_eq!(store.activity(&created.id, 1).await.unwrap()[0].created_at, at);
        store.revoke_account(&created.id, at).await.unwrap();
        assert_eq!(account(&*store, &created.id).await.revoked_at, Some(at));
    }
    let written = store.ledger(None, 100).await.unwrap().items;
    assert!(written.iter().map(|entry| entry.created_at.unix_millis()).eq(table));
}
