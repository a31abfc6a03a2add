//! Rules that the conformance suite cannot test from outside: wrong amounts, and a poisoned lock.

use std::sync::Arc;

use super::MemoryStore;
use crate::access::account::{AccountId, Totals};
use crate::access::key::KeyHash;
use crate::charging::charge::Charge;
use crate::charging::posting::Posting;
use crate::clock::Timestamp;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry};
use crate::random::SystemRandomness;
use crate::store::{Created, Discrepancy, NewAccount, Store, StoreError};
use crate::usage::{ClientSource, UsageLine};

const NOW: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);
const KEY: KeyHash = KeyHash::from_bytes([7; 32]);

async fn store_with_one_account() -> (MemoryStore, AccountId) {
    let store = MemoryStore::new();
    let id = AccountId::generate(&SystemRandomness);
    let entry = |kind, atoms| NewLedgerEntry::new(kind, Credits::from_atoms(atoms), "");
    let created = store.create_account(NewAccount {
        entries: vec![entry(LedgerKind::PurchasePaySignup, 500), entry(LedgerKind::SignupBonus, 40)],
        ..NewAccount::new(id.clone(), "agent".parse().unwrap(), KEY, NOW)
    });
    assert!(matches!(created.await.unwrap(), Created::Account(_)));
    store.commit(vec![charge(3)], NOW).await.unwrap();
    (store, id)
}

fn charge(atoms: i64) -> Posting {
    Posting::Charge(Charge::of(
        KEY,
        Credits::from_atoms(atoms),
        UsageLine { route_template: "/a".into(), http_method: "GET".into(), source: ClientSource::Direct },
    ))
}

#[tokio::test]
async fn each_wrong_amount_is_found() {
    // amount, how to corrupt it, expected value
    type Fault = fn(&mut Totals) -> &mut Credits;
    let table: [(&str, Fault, i64); 4] = [
        ("balance", |totals| &mut totals.balance, 537),
        ("purchased", |totals| &mut totals.purchased, 500),
        ("granted", |totals| &mut totals.granted, 40),
        ("used", |totals| &mut totals.used, 3),
    ];
    for (amount, fault, right) in table {
        let (store, id) = store_with_one_account().await;
        let wrong = Credits::from_atoms(right + 1);
        *fault(&mut store.state().unwrap().record_mut(&id).unwrap().account.totals) = wrong;
        let found = store.verify().await.unwrap();
        let expected = Discrepancy { account: id, amount, recorded: wrong, computed: Credits::from_atoms(right) };
        assert_eq!((found.accounts, found.discrepancies), (1, vec![expected]));
    }
}

#[tokio::test]
async fn lost_usage_and_lost_entries_are_found() {
    let (store, id) = store_with_one_account().await;
    store.state().unwrap().record_mut(&id).unwrap().usage.clear();
    let wrong: Vec<_> = store.verify().await.unwrap().discrepancies.iter().map(|wrong| wrong.amount).collect();
    assert_eq!(wrong, ["balance", "used"]);
    store.state().unwrap().ledger.clear();
    let wrong: Vec<_> = store.verify().await.unwrap().discrepancies.iter().map(|wrong| wrong.amount).collect();
    assert_eq!(wrong, ["balance", "purchased", "granted", "used"]);
}

#[tokio::test]
async fn sums_beyond_range_are_an_error_and_not_a_wrong_number() {
    let (store, id) = store_with_one_account().await;
    let entry = store.state().unwrap().ledger[0].clone();
    let huge = crate::money::LedgerEntry { amount: Credits::MAX, ..entry };
    store.state().unwrap().ledger.extend([huge.clone(), huge]);
    assert!(matches!(store.verify().await, Err(StoreError::Corrupt(_))));
    let today = crate::usage::DayRange { first: NOW.day(), last: NOW.day() };
    assert!(matches!(store.usage_report(&id, today).await, Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn a_panic_in_a_method_leaves_the_store_broken() {
    let store = Arc::new(store_with_one_account().await.0);
    let panicking = Arc::clone(&store);
    // Prices are never negative: committing one is a bug in the program.
    let panic = tokio::spawn(async move { panicking.commit(vec![charge(-1)], NOW).await }).await;
    assert!(panic.unwrap_err().is_panic());
    assert!(matches!(store.check().await, Err(StoreError::Closed(_))));
    assert!(matches!(store.commit(vec![charge(1)], NOW).await, Err(StoreError::Closed(_))));
}
