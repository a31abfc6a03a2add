//! Keys on disk: what other handles on the file see at once, and budgets.

mod budgets;
mod changes;
mod usage;

use std::path::Path;

use metering_core::access::{Budget, BudgetReset, Key, KeyHash, KeyId, KeyTerms, Scopes, Spent};
use metering_core::charging::{Outcome, Posting};
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey, TermsChange};
use metering_core::{
    AccountId, Charge, ClientSource, Credits, Decision, Receipt, Refusal, Store, Timestamp, UsageLine,
};
use metering_sqlite::SqliteStore;

use crate::scene::NOON;

/// A base call, in atoms.
const BASE: i64 = Credits::BASE_CALL.atoms();

fn calls(count: i64) -> Credits {
    Credits::from_atoms(count * BASE)
}

fn hash(number: u8) -> KeyHash {
    KeyHash::from_bytes([number; 32])
}

fn all_scopes() -> KeyTerms {
    KeyTerms::new("made".parse().unwrap(), Scopes::ALL)
}

fn budget(count: i64, reset: Option<BudgetReset>) -> Option<Budget> {
    Some(Budget { limit: calls(count), reset })
}

fn new_key(account: &AccountId, parent: Option<&KeyId>, secret: KeyHash, terms: KeyTerms) -> NewKey {
    NewKey { account: account.clone(), parent: parent.cloned(), secret, terms, max_keys: 100, created_at: NOON }
}

async fn create(
    store: &SqliteStore,
    account: &AccountId,
    parent: Option<&KeyId>,
    secret: KeyHash,
    terms: KeyTerms,
) -> Key {
    match store.create_key(new_key(account, parent, secret, terms)).await.unwrap() {
        KeyCreated::Key(key) => key,
        refusal => panic!("{refusal:?}"),
    }
}

async fn change(store: &SqliteStore, key: &Key, change: KeyChange) -> Key {
    match store.change_key(&key.account, &key.id, None, change, NOON).await.unwrap() {
        KeyChanged::Key(key) => key,
        refusal => panic!("{refusal:?}"),
    }
}

fn terms(change: TermsChange) -> KeyChange {
    KeyChange::Terms(Box::new(change))
}

fn limit(count: i64, reset: Option<BudgetReset>) -> KeyChange {
    terms(TermsChange { limit: Some(Some(calls(count))), limit_reset: Some(reset), ..TermsChange::default() })
}

fn charge_of(key: KeyHash, template: &str, price: i64) -> Charge {
    let line = UsageLine { route_template: template.into(), http_method: "GET".into(), source: ClientSource::Direct };
    Charge::of(key, Credits::from_atoms(price), line)
}

async fn charge_at(store: &SqliteStore, key: KeyHash, template: &str, at: Timestamp) -> Result<Receipt, Refusal> {
    let posting = Posting::Charge(charge_of(key, template, BASE));
    match store.commit(vec![posting], at).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => Ok(receipt),
        Outcome::Decided(Decision::Refused(refusal)) => Err(refusal),
        other => panic!("{other:?}"),
    }
}

async fn charge(store: &SqliteStore, key: KeyHash) -> Result<Receipt, Refusal> {
    charge_at(store, key, "/x", NOON).await
}

async fn spent(store: &SqliteStore, key: &Key) -> Option<Spent> {
    store.key(&key.account, &key.id, NOON.day()).await.unwrap().unwrap().spent
}

async fn spent_calls(store: &SqliteStore, key: &Key) -> i64 {
    spent(store, key).await.unwrap().amount.atoms() / BASE
}

async fn assert_sound(store: &SqliteStore) {
    let found = store.verify().await.unwrap();
    assert_eq!((found.discrepancies, found.restarted_budgets), (vec![], vec![]));
}

fn two(file: &Path) -> [SqliteStore; 2] {
    [SqliteStore::create(file).unwrap(), SqliteStore::open(file).unwrap()]
}
