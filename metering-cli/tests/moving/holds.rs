//! Accounts with holds: open ones, and ones that were settled in every way.

use metering_core::access::KeyHash;
use metering_core::charging::{
    DeliveryTerms, Fingerprint, HoldAction, HoldId, HoldTerms, HoldUpdate, IdempotencyKey, Outcome, Posting, RequestId,
};
use metering_core::store::HoldStore;
use metering_core::{AccountId, Charge, Credits, Decision, Receipt, Store, Timestamp};
use metering_sqlite::SqliteStore;

use crate::filling::{charge, grant, later};
use crate::fixture::{NOON, account, account_id, customer};

pub(crate) const HOLDER: u8 = 10;

/// The numbers of the holds, by what became of them.
const CAPTURED: u8 = 1;
const RELEASED: u8 = 2;
const EXPIRED: u8 = 3;
const OPEN: u8 = 4;
const RENEWED: u8 = 5;

fn id(number: u8) -> HoldId {
    HoldId::from_bytes([0xff - number; 16])
}

fn calls(count: i64) -> Credits {
    Credits::from_atoms(count * Credits::BASE_CALL.atoms())
}

/// A charge that holds three base calls. Its idempotency key is its number.
fn hold(number: u8) -> Charge {
    let Posting::Charge(charge) = charge(KeyHash::from_bytes([HOLDER; 32]), "/a", None) else { unreachable!() };
    let key = IdempotencyKey::parse(&number.to_string()).unwrap();
    let fingerprint = Fingerprint::of("GET", "/a", &charge.line);
    let lease = std::time::Duration::from_secs(60);
    Charge {
        price: calls(3),
        request_path: format!("/{number}").into(),
        request_id: Some(RequestId::of_idempotency_key(&key)),
        delivery: Some(DeliveryTerms { fingerprint, lease }),
        hold: Some(HoldTerms { id: id(number), lease, fallback: calls(1) }),
        ..charge
    }
}

fn update(number: u8, action: HoldAction) -> Posting {
    Posting::Hold(HoldUpdate { account: account_id(HOLDER), id: id(number), action, delivery: None })
}

async fn open(store: &dyn Store, charge: Charge, now: Timestamp) -> Receipt {
    match store.commit(vec![Posting::Charge(charge)], now).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => receipt,
        other => panic!("{other:?}"),
    }
}

async fn act(store: &dyn Store, number: u8, action: HoldAction, now: Timestamp) -> Credits {
    match store.commit(vec![update(number, action)], now).await.unwrap().remove(0) {
        Outcome::Hold(Some(updated)) if updated.changed => updated.balance,
        other => panic!("{other:?}"),
    }
}

/// An account with a hold of every kind: three base calls each, of twenty.
pub(crate) async fn fill(store: &SqliteStore) {
    customer(store, HOLDER, grant(20)).await;
    for number in [RELEASED, OPEN, CAPTURED, EXPIRED, RENEWED] {
        open(store, hold(number), NOON).await;
    }
    let capture = HoldAction::Capture { cost: calls(2), may_exceed: false };
    act(store, CAPTURED, capture, later(1)).await;
    act(store, RELEASED, HoldAction::Release, later(1)).await;
    act(store, RENEWED, HoldAction::Renew { until: later(600) }, later(30)).await;
    act(store, EXPIRED, HoldAction::Expire, later(60)).await;
}

/// Everything that can be read of an account's holds, as text.
pub(crate) async fn snapshot(store: &dyn Store, account: &AccountId) -> String {
    let mut text = format!("{:?}", store.open_holds(account, u32::MAX).await.unwrap());
    for number in [CAPTURED, RELEASED, EXPIRED, OPEN, RENEWED] {
        text += &format!("{:?}", store.hold(&id(number)).await.unwrap().filter(|hold| hold.account == *account));
    }
    text
}

/// What is open can be settled once, a retry finds its hold, and leases end when they did.
pub(crate) async fn work_as_before(store: &dyn Store) {
    let totals = account(store, &account_id(HOLDER)).await.totals;
    assert_eq!((totals.balance, totals.held, totals.used), (calls(11), calls(6), calls(3)));
    let expired = store.expired_holds(later(60), 9).await.unwrap();
    assert_eq!(expired.iter().map(|hold| hold.id).collect::<Vec<_>>(), [id(OPEN)], "the other lease was renewed");
    // The meter gives each attempt an id of its own.
    let terms = hold(OPEN).hold.map(|terms| HoldTerms { id: id(9), ..terms });
    let retry = open(store, Charge { hold: terms, ..hold(OPEN) }, later(61)).await;
    let held = retry.hold.unwrap();
    assert_eq!((retry.repeated, held.id, held.amount, retry.balance), (true, id(OPEN), calls(3), calls(11)));
    assert_eq!(act(store, OPEN, HoldAction::CaptureFallback, later(61)).await, calls(13));
    assert_eq!(act(store, RENEWED, HoldAction::Expire, later(600)).await, calls(15));
    for number in [CAPTURED, RELEASED, EXPIRED, OPEN, RENEWED] {
        let outcome = store.commit(vec![update(number, HoldAction::Release)], later(601)).await.unwrap().remove(0);
        let Outcome::Hold(Some(updated)) = outcome else { panic!("{outcome:?}") };
        assert!(!updated.changed, "{updated:?}");
    }
    let totals = account(store, &account_id(HOLDER)).await.totals;
    assert_eq!((totals.balance, totals.held, totals.used), (calls(15), Credits::ZERO, calls(5)));
}
