//! Fixtures for the contracts about holds.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{AccountId, KeyHash};
use metering_core::charging::{
    Held, Hold, HoldAction, HoldId, HoldTerms, HoldUpdate, HoldUpdated, Outcome, Posting, SettleReason, SettledHold,
};
use metering_core::clock::Timestamp;
use metering_core::random::SystemRandomness;
use metering_core::store::Store;
use metering_core::{Charge, Receipt};

use super::scene::{NOON, accepted, atoms, charge, racing, totals};

/// The lease of a hold.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// The capture of a hold whose request's cost was not reported, in atoms.
pub(super) const FALLBACK: i64 = 7;

pub(super) fn later(seconds: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(seconds))
}

pub(super) fn terms() -> HoldTerms {
    HoldTerms::new(&SystemRandomness, LEASE, atoms(FALLBACK))
}

/// A charge that holds `amount` atoms.
pub(super) fn hold(key: KeyHash, amount: i64) -> Charge {
    charge(key, amount).with_hold(terms())
}

pub(super) fn held(receipt: &Receipt) -> Held {
    receipt.hold.expect("the receipt of a hold has the held amount")
}

/// Opens a hold at `now` and expects success.
pub(super) async fn open_at(store: &dyn Store, key: KeyHash, amount: i64, now: Timestamp) -> HoldId {
    held(&accepted(store, hold(key, amount), now).await).id
}

/// Opens a hold at noon and expects success.
pub(super) async fn open(store: &dyn Store, key: KeyHash, amount: i64) -> HoldId {
    open_at(store, key, amount, NOON).await
}

pub(super) fn capture(cost: i64) -> HoldAction {
    HoldAction::Capture { cost: atoms(cost), may_exceed: false }
}

pub(super) fn capture_in_full(cost: i64) -> HoldAction {
    HoldAction::Capture { cost: atoms(cost), may_exceed: true }
}

pub(super) fn update(account: &AccountId, id: HoldId, action: HoldAction) -> Posting {
    Posting::Hold(HoldUpdate::new(account.clone(), id, action))
}

pub(super) fn updated(outcome: Outcome) -> Option<HoldUpdated> {
    match outcome {
        Outcome::Hold(updated) => updated,
        other => panic!("the outcome of an update of a hold is another one: {other:?}"),
    }
}

/// Commits one posting that updates a hold.
pub(super) async fn try_update(store: &dyn Store, posting: Posting, now: Timestamp) -> Option<HoldUpdated> {
    let mut outcomes = store.commit(vec![posting], now).await.unwrap();
    assert_eq!(outcomes.len(), 1, "one outcome for one posting");
    updated(outcomes.remove(0))
}

/// Updates a hold that must exist.
pub(super) async fn act(
    store: &dyn Store,
    account: &AccountId,
    id: HoldId,
    action: HoldAction,
    now: Timestamp,
) -> HoldUpdated {
    try_update(store, update(account, id, action), now).await.expect("the hold exists")
}

/// Commits each posting in a separate task, all concurrently.
pub(super) async fn update_at_once(store: &Arc<dyn Store>, postings: Vec<Posting>, now: Timestamp) -> Vec<HoldUpdated> {
    racing(store, postings, |store, posting| async move {
        try_update(&*store, posting, now).await.expect("the hold exists")
    })
    .await
}

/// Reads a hold that must exist.
pub(super) async fn read(store: &dyn Store, id: HoldId) -> Hold {
    store.hold(&id).await.unwrap().expect("the hold exists")
}

pub(super) fn settled(captured: i64, reason: SettleReason, at: Timestamp) -> Option<SettledHold> {
    Some(SettledHold { captured: atoms(captured), reason, at })
}

/// An account's balance, held and used credits, in atoms.
pub(super) async fn amounts(store: &dyn Store, id: &AccountId) -> (i64, i64, i64) {
    let totals = totals(store, id).await;
    (totals.balance.atoms(), totals.held.atoms(), totals.used.atoms())
}
