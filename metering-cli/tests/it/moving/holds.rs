//! An account with holds, open and settled, and what happens to them after a move.

use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::charging::{
    DeliveryTerms, Fingerprint, Hold, HoldAction, HoldId, HoldTerms, HoldUpdate, IdempotencyKey, Outcome, Posting,
    SettleReason,
};
use metering_core::{AccountId, Charge, Credits, Decision, RequestId, Store, Timestamp};
use metering_sqlite::SqliteStore;
use metering_tests::postgres::is_skipped;
use serde_json::Value;

use crate::filling::{charge, grant, later};
use crate::fixture::{Fixture, NOON, account, account_id, block_on, customer};

pub(crate) const HOLDER: u8 = 9;

/// Open holds, and what they are for.
const PLAIN: u8 = 0xe0;
const REPEATABLE: u8 = 0xe1;
const RETRIED: u8 = 0xe2;
const RENEWED: u8 = 0xe3;
/// Settled ones, by how they were settled.
const CAPTURED: u8 = 0xe4;
const EXCEEDED: u8 = 0xe5;
const UNREPORTED: u8 = 0xe6;
const RELEASED: u8 = 0xe7;
const EXPIRED: u8 = 0xe8;

/// How long leases are, in seconds.
const LEASE: u64 = 120;
const AMOUNT: i64 = 1_000_000;
const FALLBACK: i64 = 700;

fn id(number: u8) -> HoldId {
    HoldId::from_bytes([number; 16])
}

fn atoms(atoms: i64) -> Credits {
    Credits::from_atoms(atoms)
}

/// The charge that opens a hold.
fn hold(number: u8) -> Charge {
    let request = match number {
        REPEATABLE => Some(RequestId::parse("held").unwrap()),
        RETRIED => Some(RequestId::of_idempotency_key(&IdempotencyKey::parse("retried").unwrap())),
        _ => None,
    };
    let Posting::Charge(charge) = charge(KeyHash::from_bytes([HOLDER; 32]), "/Ä/{id}", None) else { unreachable!() };
    let lease = Duration::from_secs(LEASE);
    let fingerprint = Fingerprint::of("GET", "/a", &charge.line);
    Charge {
        price: atoms(AMOUNT),
        request_path: format!("/Ä/{}", "long".repeat(usize::from(number - PLAIN) * 8)).into(),
        request_id: request,
        delivery: (number == RETRIED).then_some(DeliveryTerms { fingerprint, lease }),
        hold: Some(HoldTerms { id: id(number), lease, fallback: atoms(FALLBACK) }),
        ..charge
    }
}

/// An account with a hold of every kind.
pub(crate) async fn fill(store: &SqliteStore) {
    let (holder, _) = customer(store, HOLDER, grant(1_000)).await;
    let charges = (PLAIN..=EXPIRED).map(|number| Posting::Charge(hold(number)));
    let outcomes = store.commit(charges.collect(), NOON).await.unwrap();
    let accepted = |outcome: &Outcome| matches!(outcome, Outcome::Decided(Decision::Accepted(_)));
    assert!(outcomes.iter().all(accepted), "{outcomes:?}");
    let capture = |cost, may_exceed| HoldAction::Capture { cost: atoms(cost), may_exceed };
    for (number, action, now) in [
        (RENEWED, HoldAction::Renew { until: later(LEASE * 10) }, later(1)),
        (CAPTURED, capture(20_000, false), later(2)),
        (EXCEEDED, capture(AMOUNT * 2, true), later(2)),
        (UNREPORTED, HoldAction::CaptureFallback, later(3)),
        (RELEASED, HoldAction::Release, later(3)),
        (EXPIRED, HoldAction::Expire, later(LEASE)),
    ] {
        let after = update(store, &holder, number, action, now).await;
        assert!(after.is_some(), "{action:?}");
    }
}

/// The hold after an update; `None` if nothing changed.
async fn update(store: &dyn Store, holder: &AccountId, number: u8, action: HoldAction, now: Timestamp) -> Option<Hold> {
    let update = HoldUpdate { account: holder.clone(), id: id(number), action, delivery: None, counted_in: None };
    match store.commit(vec![Posting::Hold(update)], now).await.unwrap().remove(0) {
        Outcome::Hold(Some(updated)) => updated.changed.then_some(updated.hold),
        other => panic!("{other:?}"),
    }
}

/// Everything that can be read of an account's holds, as text.
pub(crate) async fn snapshot(store: &dyn Store, account: &AccountId) -> String {
    let mut text = format!("{:?}", store.open_holds(account, u32::MAX).await.unwrap());
    for number in PLAIN..=EXPIRED {
        text += &format!("{:?}", store.hold(&id(number)).await.unwrap().filter(|hold| hold.account == *account));
    }
    text
}

#[test]
fn what_is_held_is_the_same_at_both_ends() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    block_on(crate::filling::fill(&fixture));
    let moved = fixture.migrate(&["--json"]).json();
    let held_in = |name: &str| -> Value {
        let sections = moved["sections"].as_array().unwrap();
        let section = sections.iter().find(|section| section["section"] == name).unwrap();
        assert_eq!(section["from"], section["to"]);
        section["to"]["amounts"]["held"].clone()
    };
    assert_eq!(held_in("holds"), held_in("accounts"), "{moved}");
    assert_ne!(held_in("holds"), Value::from(0));
}

/// Open holds can be settled once, settled ones stay, and a retry gets the hold that its request opened.
pub(crate) async fn work_as_before(store: &dyn Store) {
    let holder = account_id(HOLDER);
    let before = account(store, &holder).await.totals;
    assert_eq!(before.held, atoms(4 * AMOUNT));
    let settled = async |number| store.hold(&id(number)).await.unwrap().unwrap().settled.unwrap();
    // hold, what was captured, why
    for (number, captured, reason) in [
        (CAPTURED, 20_000, SettleReason::Report),
        (EXCEEDED, 2 * AMOUNT, SettleReason::Report),
        (UNREPORTED, FALLBACK, SettleReason::NoReport),
        (RELEASED, 0, SettleReason::Release),
        (EXPIRED, FALLBACK, SettleReason::Expiry),
    ] {
        let was = settled(number).await;
        assert_eq!((was.captured, was.reason), (atoms(captured), reason));
        assert_eq!(update(store, &holder, number, HoldAction::Release, later(10)).await, None, "{number:x}");
    }
    let expired = store.expired_holds(later(LEASE), u32::MAX).await.unwrap();
    let due: Vec<_> = expired.iter().filter(|hold| hold.account == holder).map(|hold| hold.id).collect();
    assert_eq!(due, [PLAIN, REPEATABLE, RETRIED].map(id), "the lease of the fourth was renewed");
    // A retry names a new hold, and gets the first. Its request was not delivered within its lease.
    for number in [REPEATABLE, RETRIED] {
        let terms = hold(number).hold.map(|terms| HoldTerms { id: id(0xef), ..terms });
        let retry = Charge { hold: terms, ..hold(number) };
        match store.commit(vec![Posting::Charge(retry)], later(LEASE)).await.unwrap().remove(0) {
            Outcome::Decided(Decision::Accepted(receipt)) => {
                assert_eq!((receipt.repeated, receipt.hold.unwrap().id), (true, id(number)));
            }
            other => panic!("{other:?}"),
        }
    }
    let cost = HoldAction::Capture { cost: atoms(3), may_exceed: false };
    assert!(update(store, &holder, PLAIN, cost, later(LEASE)).await.is_some());
    assert!(update(store, &holder, REPEATABLE, HoldAction::CaptureFallback, later(LEASE)).await.is_some());
    assert!(update(store, &holder, RETRIED, HoldAction::Release, later(LEASE)).await.is_some());
    assert_eq!(update(store, &holder, RENEWED, HoldAction::Expire, later(LEASE)).await, None);
    assert!(update(store, &holder, RENEWED, HoldAction::Expire, later(LEASE * 10)).await.is_some());
    let after = account(store, &holder).await.totals;
    let captured = atoms(3 + 2 * FALLBACK);
    assert_eq!(after.held, Credits::ZERO);
    assert_eq!(after.used, before.used.checked_add(captured).unwrap());
    assert_eq!(after.balance, before.balance.checked_add(atoms(4 * AMOUNT)).unwrap().checked_sub(captured).unwrap());
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}
