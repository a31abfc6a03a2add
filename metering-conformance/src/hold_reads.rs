//! Contracts for reading holds, for how long they are kept, and for what changes an account while credits are held.

use std::sync::Arc;
use std::time::Duration;

use metering_core::Refusal;
use metering_core::charging::{Hold, HoldAction, HoldId, HoldTerms, Outcome, SettleReason};
use metering_core::clock::Timestamp;
use metering_core::money::LedgerKind;
use metering_core::store::{Posted, Store};

use super::hold_scene::{
    FALLBACK, act, amounts, capture, capture_in_full, held, hold, later, open, open_at, read, settled, terms,
    try_update, update,
};
use super::scene::{
    DAY, NOON, Verified, accepted, adjustment, assert_verified, atoms, charge, commit_refund, customer, entry, new_id,
    post, refused,
};

fn ids(holds: &[Hold]) -> Vec<HoldId> {
    holds.iter().map(|hold| hold.id).collect()
}

/// The open holds of an account, newest first. Settled holds and those of other accounts are not among them.
pub async fn open_holds_are_newest_first(store: Arc<dyn Store>) {
    let (owner, other) = (customer(&*store, 1_000).await, customer(&*store, 1_000).await);
    let mut opened = Vec::new();
    for seconds in [5, 0, 9, 3, 7] {
        opened.push((later(seconds), open_at(&*store, owner.key, 10, later(seconds)).await));
        open_at(&*store, other.key, 10, later(seconds)).await;
    }
    opened.sort_unstable();
    let mut newest: Vec<_> = opened.iter().rev().map(|(_, id)| *id).collect();
    for limit in 0..7_u32 {
        let found = store.open_holds(&owner.id, limit).await.unwrap();
        let expected = &newest[..newest.len().min(limit as usize)];
        assert_eq!(ids(&found), expected, "at most {limit}");
    }
    let found = store.open_holds(&owner.id, 10).await.unwrap();
    assert!(found.iter().all(|hold| hold.account == owner.id && hold.settled.is_none()));
    assert_eq!(found[2], read(&*store, newest[2]).await);
    act(&*store, &owner.id, newest[1], capture(1), later(10)).await;
    act(&*store, &owner.id, newest[3], HoldAction::Release, later(10)).await;
    act(&*store, &owner.id, newest[4], HoldAction::Renew { until: later(99) }, later(10)).await;
    newest.remove(3);
    newest.remove(1);
    assert_eq!(ids(&store.open_holds(&owner.id, 10).await.unwrap()), newest);
    assert_eq!(store.open_holds(&owner.id, 10).await.unwrap()[2].expires_at, later(99));
    assert_eq!(store.open_holds(&other.id, 10).await.unwrap().len(), 5);
    assert_eq!(store.open_holds(&new_id(), 10).await.unwrap(), []);
}

/// The holds whose lease has ended, of all accounts, in the order of those ends. Settled and renewed ones are not among
/// them.
pub async fn expired_holds_are_in_the_order_of_their_ends(store: Verified<dyn Store>) {
    let customers = [customer(&*store, 1_000).await, customer(&*store, 1_000).await];
    let mut opened = Vec::new();
    for (number, lease) in [50, 20, 40, 10, 30].into_iter().enumerate() {
        let of = &customers[number % 2];
        let terms = HoldTerms { lease: Duration::from_secs(lease), ..terms() };
        let id = held(&accepted(&*store, charge(of.key, 10).with_hold(terms), NOON).await).id;
        opened.push((later(lease), of.id.clone(), id));
    }
    opened.sort_unstable();
    let order: Vec<_> = opened.iter().map(|(_, _, id)| *id).collect();
    let expired = async |now, limit| ids(&store.expired_holds(now, limit).await.unwrap());
    assert_eq!(expired(later(9), 10).await, []);
    for (ended, (end, ..)) in opened.iter().enumerate() {
        assert_eq!(expired(end.saturating_sub(Duration::from_millis(1)), 10).await, order[..ended]);
        assert_eq!(expired(*end, 10).await, order[..=ended]);
    }
    for limit in 0..7_u32 {
        assert_eq!(expired(later(1_000), limit).await, order[..order.len().min(limit as usize)], "at most {limit}");
    }
    assert_eq!(store.expired_holds(later(10), 10).await.unwrap(), [read(&*store, order[0]).await]);
    act(&*store, &opened[0].1, order[0], HoldAction::Renew { until: later(45) }, later(5)).await;
    act(&*store, &opened[2].1, order[2], capture(1), later(5)).await;
    assert_eq!(expired(later(1_000), 10).await, [order[1], order[3], order[0], order[4]]);
    // A revoked account's holds end too.
    store.revoke_account(&opened[1].1, later(5)).await.unwrap();
    for hold in store.expired_holds(later(45), 10).await.unwrap() {
        assert!(act(&*store, &hold.account, hold.id, HoldAction::Expire, later(45)).await.changed);
    }
    assert_eq!(expired(later(49), 10).await, []);
    assert_eq!(expired(later(50), 10).await, [order[4]]);
}

/// A settled hold is kept for its retention, and then deleted with what has expired. An open one is never deleted.
pub async fn settled_holds_are_forgotten(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let (stays, first, second) = (
        open(&*store, customer.key, 10).await,
        open(&*store, customer.key, 10).await,
        open(&*store, customer.key, 10).await,
    );
    act(&*store, &customer.id, first, capture(4), later(10)).await;
    act(&*store, &customer.id, second, HoldAction::Release, later(20)).await;
    let end = |seconds| later(seconds).saturating_add(Hold::RETENTION);
    let moment = Duration::from_millis(1);
    for early in [NOON, later(20), NOON.saturating_add(Hold::RETENTION), end(10).saturating_sub(moment)] {
        assert_eq!(store.forget_expired(early).await.unwrap(), 0, "at {early}");
        assert_eq!(read(&*store, first).await.settled, settled(4, SettleReason::Report, later(10)));
    }
    assert_eq!(store.forget_expired(end(10)).await.unwrap(), 1);
    assert_eq!(store.hold(&first).await.unwrap(), None);
    assert_eq!(read(&*store, second).await.settled, settled(0, SettleReason::Release, later(20)));
    for action in [capture(4), HoldAction::Release, HoldAction::Renew { until: end(99) }] {
        assert_eq!(try_update(&*store, update(&customer.id, first, action), end(11)).await, None);
    }
    for count in [1, 0] {
        assert_eq!(store.forget_expired(end(20)).await.unwrap(), count);
    }
    // A store with events deletes that of the account's first key.
    assert!(store.forget_expired(NOON.saturating_add(DAY * 10_000)).await.unwrap() <= 1);
    assert_eq!(store.hold(&second).await.unwrap(), None);
    assert_eq!(ids(&store.open_holds(&customer.id, 10).await.unwrap()), [stays]);
    assert_eq!(amounts(&*store, &customer.id).await, (86, 10, 4));
    assert!(act(&*store, &customer.id, stays, capture(3), end(99)).await.changed);
    assert_eq!(amounts(&*store, &customer.id).await, (93, 0, 7));
}

/// The holds of a revoked account are settled like others, but it gets no new one.
pub async fn a_revoked_accounts_holds_are_settled(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1_000).await;
    let actions = [
        (capture(20), 20),
        (capture_in_full(900), 900),
        (HoldAction::CaptureFallback, FALLBACK),
        (HoldAction::Release, 0),
        (HoldAction::Expire, FALLBACK),
    ];
    let mut opened = Vec::new();
    for _ in actions {
        opened.push(open(&*store, customer.key, 60).await);
    }
    store.revoke_account(&customer.id, later(1)).await.unwrap().expect("the account exists");
    assert_eq!(amounts(&*store, &customer.id).await, (700, 300, 0));
    assert_eq!(refused(&*store, hold(customer.key, 1), later(2)).await, Refusal::UnknownKey);
    assert_eq!(store.open_holds(&customer.id, 10).await.unwrap().len(), 5);
    let mut used = 0;
    for (id, (action, captured)) in opened.into_iter().zip(actions) {
        let updated = act(&*store, &customer.id, id, action, later(30)).await;
        used += captured;
        assert_eq!(updated.hold.settled.map(|settled| settled.captured), Some(atoms(captured)), "{action:?}");
    }
    assert_eq!(amounts(&*store, &customer.id).await, (1_000 - used, 0, used));
}

/// Charges, refunds and ledger entries change the balance while credits are held, and do not change the hold.
pub async fn a_hold_stays_while_the_balance_changes(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let receipt = accepted(&*store, charge(customer.key, 30), NOON).await;
    let id = open(&*store, customer.key, 60).await;
    let before = read(&*store, id).await;
    commit_refund(&*store, receipt.into_refund().expect("there is a charge"), NOON).await.expect("it succeeds");
    assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
    post(&*store, &customer.id, entry(LedgerKind::PurchaseTopup, 15), NOON).await;
    post(&*store, &customer.id, adjustment(-155), NOON).await;
    assert_eq!(amounts(&*store, &customer.id).await, (-100, 60, 0));
    assert_verified(&*store).await;
    assert!(matches!(refused(&*store, hold(customer.key, 1), NOON).await, Refusal::InsufficientCredits { .. }));
    assert_eq!(read(&*store, id).await, before);
    // With a balance below zero, the held credits still pay for their request.
    let updated = act(&*store, &customer.id, id, capture(50), NOON).await;
    assert_eq!((updated.balance, updated.excess), (atoms(-90), atoms(0)));
    assert_eq!(amounts(&*store, &customer.id).await, (-90, 0, 50));
}

/// Held credits may return to the balance, so an entry or a refund that would leave no room for them changes nothing.
pub async fn held_credits_always_fit_into_the_balance(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10).await;
    let refund = accepted(&*store, charge(customer.key, 5), NOON).await.into_refund().expect("there is a charge");
    let id = open(&*store, customer.key, 5).await;
    let too_much = entry(LedgerKind::PurchaseTopup, i64::MAX - 4);
    assert_eq!(store.post_entry(&customer.id, too_much, NOON).await.unwrap(), Posted::OutOfRange);
    assert_eq!(amounts(&*store, &customer.id).await, (0, 5, 5));
    post(&*store, &customer.id, entry(LedgerKind::PurchaseTopup, i64::MAX - 5), NOON).await;
    assert_eq!(amounts(&*store, &customer.id).await, (i64::MAX - 5, 5, 5));
    assert_eq!(commit_refund(&*store, refund, NOON).await, None, "it leaves no room for the hold");
    assert_eq!(amounts(&*store, &customer.id).await, (i64::MAX - 5, 5, 5));
    let released = act(&*store, &customer.id, id, HoldAction::Release, NOON).await;
    assert_eq!((released.changed, released.balance), (true, atoms(i64::MAX)));
}

/// Held credits may be used, so a full capture that would leave no room for other holds captures only the held amount,
/// and a hold that does not fit is refused.
pub async fn held_credits_always_fit_into_what_is_used(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10).await;
    let (first, second) = (open(&*store, customer.key, 4).await, open(&*store, customer.key, 5).await);
    let updated = act(&*store, &customer.id, first, capture_in_full(i64::MAX), NOON).await;
    assert_eq!(updated.hold.settled, settled(4, SettleReason::Report, NOON));
    assert_eq!((updated.changed, updated.excess), (true, atoms(i64::MAX - 4)));
    assert_eq!(amounts(&*store, &customer.id).await, (1, 5, 4));
    // A charge that takes all the room but that of the hold.
    accepted(&*store, charge(customer.key, i64::MAX - 9), NOON).await;
    assert_eq!(amounts(&*store, &customer.id).await, (10 - i64::MAX, 5, i64::MAX - 5));
    let third = post(&*store, &customer.id, entry(LedgerKind::PurchaseTopup, i64::MAX - 5), NOON).await;
    assert_eq!(third.totals.balance, atoms(5));
    for request in [hold(customer.key, 1), charge(customer.key, 1)] {
        assert!(matches!(refused(&*store, request, NOON).await, Refusal::InsufficientCredits { .. }));
    }
    assert!(act(&*store, &customer.id, second, capture(5), NOON).await.changed);
    assert_eq!(amounts(&*store, &customer.id).await, (5, 0, i64::MAX));
}

/// The largest hold that can be covered is stored, and settled, exactly.
pub async fn the_largest_hold_is_exact(store: Verified<dyn Store>) {
    let customer = customer(&*store, i64::MAX).await;
    for action in [HoldAction::Release, capture(i64::MAX)] {
        let id = open(&*store, customer.key, i64::MAX).await;
        assert_eq!(amounts(&*store, &customer.id).await, (0, i64::MAX, 0));
        assert_eq!(read(&*store, id).await.amount, atoms(i64::MAX));
        assert_verified(&*store).await;
        act(&*store, &customer.id, id, action, NOON).await;
    }
    assert_eq!(amounts(&*store, &customer.id).await, (0, 0, i64::MAX));
}

/// Many holds are listed, limited and settled in one batch.
pub async fn many_holds_are_settled_in_one_batch(store: Verified<dyn Store>) {
    const MANY: i64 = 500;
    let customer = customer(&*store, 10 * MANY).await;
    let holds = (0..MANY).map(|_| hold(customer.key, 10)).collect();
    super::scene::commit(&*store, holds, NOON).await;
    assert_eq!(amounts(&*store, &customer.id).await, (0, 10 * MANY, 0));
    assert_eq!(store.expired_holds(later(30), 100).await.unwrap().len(), 100);
    let at = Timestamp::from_unix_millis(later(30).unix_millis());
    let expired = store.expired_holds(at, 1_000).await.unwrap();
    let batch = expired.iter().map(|hold| update(&customer.id, hold.id, HoldAction::Expire)).collect();
    let outcomes = store.commit(batch, at).await.unwrap();
    assert_eq!(outcomes.len(), 500);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Hold(Some(updated)) if updated.changed)));
    assert_eq!(amounts(&*store, &customer.id).await, (3 * MANY, 0, FALLBACK * MANY));
    assert_eq!(store.expired_holds(later(10_000), 10).await.unwrap(), []);
}
