//! An account with holds, open and settled.

use std::time::Duration;

use metering_core::access::KeyHash;
use metering_core::charging::{
    DeliveryTerms, Fingerprint, HoldAction, HoldId, HoldTerms, HoldUpdate, IdempotencyKey, Outcome, Posting,
};
use metering_core::{AccountId, Charge, Credits, Decision, RequestId, Store};
use metering_sqlite::SqliteStore;

use super::filling::{charge, grant, later};
use super::{NOON, customer};

const HOLDER: u8 = 9;

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
    charge
        .with_price(atoms(AMOUNT))
        .with_path(format!("/Ä/{}", "long".repeat(usize::from(number - PLAIN) * 8)))
        .with_request_id(request)
        .with_delivery((number == RETRIED).then_some(DeliveryTerms { fingerprint, lease }))
        .with_hold(HoldTerms { id: id(number), lease, fallback: atoms(FALLBACK) })
        .with_tokens(u32::from(number))
}

/// An account with a hold of every kind.
pub(crate) async fn fill(store: &SqliteStore) {
    let (holder, _) = customer(store, HOLDER, grant(1_000)).await;
    store.set_token_limit(&holder, 1_000_000).await.unwrap();
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
        let update = HoldUpdate::new(holder.clone(), id(number), action);
        let outcomes = store.commit(vec![Posting::Hold(update)], now).await.unwrap();
        assert!(matches!(&outcomes[..], [Outcome::Hold(Some(updated))] if updated.changed), "{outcomes:?}");
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
