//! Holds on disk: what other handles on the file see at once, rate limits, crashes, verification, and agreement with
//! the memory store.

mod agreement;
mod books;
mod journal;

use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::charging::{Hold, HoldAction, HoldId, HoldTerms, HoldUpdate, HoldUpdated, Outcome, Posting};
use metering_core::store::HoldStore;
use metering_core::{
    AccountId, Charge, ClientSource, Credits, Decision, Receipt, Refusal, Store, Timestamp, UsageLine,
};
use metering_sqlite::SqliteStore;

use crate::scene::{NOON, account, count, created};

/// A base call, in atoms.
const BASE: i64 = Credits::BASE_CALL.atoms();
const LEASE: Duration = Duration::from_secs(60);

fn calls(count: i64) -> Credits {
    Credits::from_atoms(count * BASE)
}

fn at(second: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(second))
}

fn id_of(number: u8) -> HoldId {
    HoldId::from_bytes([number; 16])
}

/// A charge of some base calls.
fn charge_of(key: KeyHash, count: i64) -> Charge {
    let line = UsageLine { route_template: "/{n}".into(), http_method: "GET".into(), source: ClientSource::Direct };
    Charge::of(key, calls(count), line).with_path("/7")
}

/// A charge that holds some base calls, with a fallback of one.
fn hold_of(key: KeyHash, count: i64, number: u8) -> Charge {
    let terms = HoldTerms { id: id_of(number), lease: LEASE, fallback: calls(1) };
    charge_of(key, count).with_hold(terms)
}

fn update(account: &AccountId, number: u8, action: HoldAction) -> Posting {
    Posting::Hold(HoldUpdate::new(account.clone(), id_of(number), action))
}

fn capture(count: i64) -> HoldAction {
    HoldAction::Capture { cost: calls(count), may_exceed: false }
}

async fn post(store: &SqliteStore, charge: Charge, now: Timestamp) -> Result<Receipt, Refusal> {
    match store.commit(vec![Posting::Charge(charge)], now).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => Ok(receipt),
        Outcome::Decided(Decision::Refused(refusal)) => Err(refusal),
        other => panic!("{other:?}"),
    }
}

async fn open(store: &SqliteStore, key: KeyHash, count: i64, number: u8) -> Receipt {
    post(store, hold_of(key, count, number), NOON).await.unwrap()
}

async fn act(store: &SqliteStore, account: &AccountId, number: u8, action: HoldAction) -> HoldUpdated {
    match store.commit(vec![update(account, number, action)], NOON).await.unwrap().remove(0) {
        Outcome::Hold(Some(updated)) => updated,
        other => panic!("{other:?}"),
    }
}

/// Balance, held and used of an account, in base calls.
async fn amounts(store: &SqliteStore, id: &AccountId) -> [i64; 3] {
    let totals = store.account(id).await.unwrap().unwrap().totals;
    [totals.balance, totals.held, totals.used].map(|amount| amount.atoms() / BASE)
}

async fn assert_sound(store: &SqliteStore) {
    let found = store.verify().await.unwrap();
    assert_eq!((found.discrepancies, found.restarted_budgets), (vec![], vec![]));
}

fn numbers(holds: &[Hold]) -> Vec<u8> {
    holds.iter().map(|hold| hold.id.as_bytes()[0]).collect()
}

#[tokio::test]
async fn a_hold_survives_reopening() {
    let (_folder, file, store) = created();
    let (id, key) = account(&store, 10).await;
    open(&store, key, 4, 1).await;
    let held = store.hold(&id_of(1)).await.unwrap().unwrap();
    assert_eq!((held.held(), held.fallback, held.expires_at), (calls(4), calls(1), at(60)));
    assert_eq!(count(&file, "charge_journal"), 1, "the change of the held amount");
    drop(store);
    assert_eq!(count(&file, "charge_journal"), 0, "it is folded");

    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(store.hold(&id_of(1)).await.unwrap(), Some(held));
    assert_eq!(amounts(&store, &id).await, [6, 4, 0]);
    assert!(post(&store, hold_of(key, 7, 2), NOON).await.is_err(), "not covered");
    let updated = act(&store, &id, 1, capture(3)).await;
    assert_eq!((updated.balance, updated.changed), (calls(7), true));
    drop(store);

    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(amounts(&store, &id).await, [7, 0, 3]);
    assert_eq!(store.hold(&id_of(1)).await.unwrap(), Some(updated.hold));
    assert_sound(&store).await;
}
