//! Contracts for repeated requests whose credits are held: one hold for each request id and each idempotency key.

use std::sync::Arc;
use std::time::Duration;

use metering_core::charging::{HoldAction, HoldId, HoldUpdated, Posting, Repetition, SettleReason};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::store::Store;
use metering_core::{Charge, Decision, Receipt, Refusal, RequestId};

use super::hold_scene::{FALLBACK, act, amounts, capture, held, later, read, settled, terms, try_update, updated};
use super::idempotency_keys::{LEASE, keyed, number, repeated, settle};
use super::races::all_at_once;
use super::scene::{
    NOON, Verified, accepted, all_daily_totals, assert_verified, atoms, charge, charge_named, commit, customer,
};

/// Makes a charge a hold.
fn holding(charge: Charge) -> Charge {
    charge.with_hold(terms())
}

/// The expected response to a repeated hold: the same hold and amount, and no charge.
fn summary(receipt: &Receipt) -> (HoldId, Credits, Credits, bool) {
    let held = held(receipt);
    (held.id, held.amount, receipt.charged, receipt.repeated)
}

/// Releases the hold of a receipt, as the attempt that it is of.
async fn release(store: &dyn Store, receipt: &Receipt, now: Timestamp) -> HoldUpdated {
    let update = receipt.hold_update(HoldAction::Release).expect("it is a hold");
    assert_eq!(update.delivery.as_ref(), receipt.delivery.as_ref());
    try_update(store, Posting::Hold(update), now).await.expect("the hold exists")
}

/// A repeated request gets the hold of the first one even if it differs, also within one batch and after the hold is
/// settled. Nothing is held twice.
pub async fn a_repeated_request_gets_the_same_hold(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let named = |amount| holding(charge_named(customer.key, amount, "r1"));
    let decisions = commit(&*store, vec![named(60), named(60), named(9)], NOON).await;
    let receipts: Vec<_> = decisions
        .into_iter()
        .map(|decision| match decision {
            Decision::Accepted(receipt) => receipt,
            Decision::Refused(refusal) => panic!("{refusal:?}"),
        })
        .collect();
    let id = held(&receipts[0]).id;
    let expected = |repeated| (id, atoms(60), Credits::ZERO, repeated);
    assert!(receipts.iter().map(summary).eq([expected(false), expected(true), expected(true)]));
    for amount in [60, 1, 0] {
        let again = accepted(&*store, named(amount), later(1)).await;
        assert_eq!((summary(&again), again.balance), (expected(true), atoms(40)));
        assert_eq!(again.hold_update(capture(1)).map(|update| update.id), Some(id));
        assert_eq!(again.into_refund(), None, "a hold is released, not refunded");
    }
    for amount in [61, i64::MAX] {
        assert_eq!(repeated(&*store, named(amount), later(1)).await, Repetition::OtherRequest, "it needs more");
    }
    assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
    assert_eq!(store.open_holds(&customer.id, 10).await.unwrap().len(), 1);
    act(&*store, &customer.id, id, capture(10), later(2)).await;
    let again = accepted(&*store, named(60), later(3)).await;
    assert_eq!((summary(&again), again.balance), (expected(true), atoms(40)), "the first result");
    let captured = act(&*store, &customer.id, id, capture(50), later(4)).await;
    assert_eq!((captured.changed, captured.hold.settled), (false, settled(10, SettleReason::Report, later(2))));
    assert_eq!(amounts(&*store, &customer.id).await, (90, 0, 10));
}

/// A refused hold is not remembered, and an expired request id gets a new hold.
pub async fn a_request_id_of_a_hold_expires(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let named = |amount| holding(charge_named(customer.key, amount, "r1"));
    super::scene::refused(&*store, named(101), NOON).await;
    let first = accepted(&*store, named(60), NOON).await;
    assert!(!first.repeated);
    let end = NOON.saturating_add(RequestId::RETENTION);
    let last = accepted(&*store, named(60), end.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!((last.repeated, held(&last).id), (true, held(&first).id));
    let second = accepted(&*store, named(30), end).await;
    assert_eq!((second.repeated, held(&second).id == held(&first).id), (false, false));
    assert_eq!(amounts(&*store, &customer.id).await, (10, 90, 0));
}

/// A request id or an idempotency key of a hold is refused for a charge, and the other way round. Nothing changes.
pub async fn a_hold_and_a_charge_are_different_requests(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let requests = [charge_named(customer.key, 20, "r1"), keyed(customer.key, 20, "k1", 1)];
    for request in requests {
        let other = request.clone().with_request_id(RequestId::parse("r2").unwrap());
        for (first, second) in [(holding(request.clone()), request), (other.clone(), holding(other))] {
            let before = accepted(&*store, first.clone(), NOON).await;
            let amounts_before = amounts(&*store, &customer.id).await;
            for at in [NOON, later(50)] {
                assert_eq!(repeated(&*store, second.clone(), at).await, Repetition::OtherRequest);
            }
            assert_eq!(amounts(&*store, &customer.id).await, amounts_before);
            let again = accepted(&*store, first, later(60)).await;
            assert_eq!((again.repeated, again.hold.map(|held| held.id)), (true, before.hold.map(|held| held.id)));
            // The next request may use the id again.
            store.forget_expired(NOON.saturating_add(RequestId::RETENTION)).await.unwrap();
        }
    }
    // In one batch, too.
    let charged = || charge_named(customer.key, 5, "r3");
    let decisions = commit(&*store, vec![charged(), holding(charged()), charged()], NOON).await;
    let refusal = Refusal::Repeated(Repetition::OtherRequest);
    assert_eq!(decisions[1], Decision::Refused(refusal));
    assert!(matches!(&decisions[2], Decision::Accepted(receipt) if receipt.repeated && receipt.hold.is_none()));
}

/// A later attempt with an idempotency key takes over the hold of the first one, on its day, with the current balance.
pub async fn a_later_attempt_takes_over_the_hold(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let evening = NOON.day().start().saturating_add(super::scene::DAY).saturating_sub(Duration::from_secs(5));
    let next_day = evening.saturating_add(LEASE);
    let request = |amount| holding(keyed(customer.key, amount, "k", 1));
    let first = accepted(&*store, request(60), evening).await;
    assert_eq!((number(&first), first.day), (1, evening.day()));
    let wait = Repetition::InProgress { retry_after_seconds: 40 };
    assert_eq!(repeated(&*store, request(60), evening).await, wait);
    accepted(&*store, charge(customer.key, 5), evening).await;
    let second = accepted(&*store, request(50), next_day).await;
    assert_eq!(summary(&second), (held(&first).id, atoms(60), Credits::ZERO, true));
    assert_eq!((number(&second), second.day, second.balance), (2, evening.day(), atoms(35)));
    assert_eq!(amounts(&*store, &customer.id).await, (35, 60, 5));
    let captured = act(&*store, &customer.id, held(&second).id, capture(15), next_day).await;
    assert_eq!((captured.changed, captured.balance), (true, atoms(80)));
    settle(&*store, &second, next_day).await;
    assert_eq!(repeated(&*store, request(60), next_day).await, Repetition::UsedUp);
    let days = all_daily_totals(&*store).await;
    assert!(days.iter().all(|total| total.day == evening.day()), "{days:?}");
    assert_eq!(amounts(&*store, &customer.id).await, (80, 0, 20));
}

/// A release or a fallback by an attempt that was taken over does nothing. A release by the last attempt drops the key,
/// so the next request gets a new hold.
pub async fn only_the_last_attempt_releases_the_hold(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let request = || holding(keyed(customer.key, 60, "k", 1));
    let first = accepted(&*store, request(), NOON).await;
    let second = accepted(&*store, request(), later(40)).await;
    let late = release(&*store, &first, later(41)).await;
    assert_eq!((late.changed, late.balance, late.hold.settled), (false, atoms(40), None));
    let fallback = first.hold_update(HoldAction::CaptureFallback).expect("it is a hold");
    let late = try_update(&*store, Posting::Hold(fallback), later(41)).await.expect("the hold exists");
    assert_eq!((late.changed, late.hold.settled), (false, None), "the response of the later attempt may still come");
    assert!(matches!(repeated(&*store, request(), later(42)).await, Repetition::InProgress { .. }));
    assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
    let released = release(&*store, &second, later(43)).await;
    assert_eq!((released.changed, released.balance), (true, atoms(100)));
    assert_eq!(released.hold.settled, settled(0, SettleReason::Release, later(43)));
    // Even another request may use the key, and a node with a lagging clock does not find the old one.
    let third = accepted(&*store, holding(keyed(customer.key, 30, "k", 2)), NOON).await;
    assert_eq!((third.repeated, number(&third), held(&third).id == held(&first).id), (false, 1, false));
    // The attempts before it have the numbers of its attempts, but not its hold.
    for old in [&first, &second] {
        assert!(!release(&*store, old, later(44)).await.changed);
    }
    assert!(matches!(
        repeated(&*store, holding(keyed(customer.key, 30, "k", 2)), later(1)).await,
        Repetition::InProgress { .. }
    ));
    assert_eq!(amounts(&*store, &customer.id).await, (70, 30, 0));
}

/// A hold whose cost was reported has paid for its request: its idempotency key is used up, and its request id gets the
/// same hold again. If the request's cost is unknown, or it was not served, a retry gets a new hold, not that of the
/// first attempt.
pub async fn a_retry_is_held_anew_unless_its_cost_is_known(store: Arc<dyn Store>) {
    // action, captured amount, whether a retry gets a new hold
    let table = [
        (capture(10), 10, false),
        (HoldAction::CaptureFallback, FALLBACK, true),
        (HoldAction::Expire, FALLBACK, true),
        (HoldAction::Release, 0, true),
    ];
    for (action, captured, is_new) in table {
        let customer = customer(&*store, 100).await;
        let requests = [keyed(customer.key, 30, "k", 1), charge_named(customer.key, 30, "r1")];
        for (count, request) in (1..).zip(requests) {
            let request = || holding(request.clone());
            let first = accepted(&*store, request(), NOON).await;
            let id = held(&first).id;
            // Not by the attempt itself, whose release would forget the key.
            assert!(act(&*store, &customer.id, id, action, later(35)).await.changed);
            if !is_new && first.delivery.is_some() {
                assert_eq!(repeated(&*store, request(), later(40)).await, Repetition::UsedUp);
                continue;
            }
            let second = accepted(&*store, request(), later(40)).await;
            assert_eq!((held(&second).id != id, held(&second).amount), (is_new, atoms(30)), "{action:?}");
            assert_eq!(second.repeated, !is_new);
            assert_eq!(second.delivery.as_ref().map(|attempt| attempt.number), first.delivery.as_ref().map(|_| 2));
            let (used, held_now) = (count * captured, if is_new { 30 } else { 0 });
            assert_eq!(amounts(&*store, &customer.id).await, (100 - used - held_now, held_now, used), "{action:?}");
            if is_new {
                act(&*store, &customer.id, held(&second).id, HoldAction::Release, later(41)).await;
            }
        }
        assert_verified(&*store).await;
    }
}

/// An accepted retry renews the lease of the hold that it takes over, and never shortens it.
pub async fn a_retry_renews_the_lease(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let request = || holding(charge_named(customer.key, 60, "r1"));
    let id = held(&accepted(&*store, request(), NOON).await).id;
    for (seconds, end) in [(0, 30), (10, 40), (5, 40), (100, 130)] {
        assert!(accepted(&*store, request(), later(seconds)).await.repeated);
        assert_eq!(read(&*store, id).await.expires_at, later(end), "after {seconds} seconds");
    }
    assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
}

/// The same rules apply within one batch: a release and the next request, and a retry and the release of the attempt
/// before it.
pub async fn a_batch_decides_attempts_in_order(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let request = || holding(keyed(customer.key, 60, "k", 1));
    let first = accepted(&*store, request(), NOON).await;
    let posting = |receipt: &Receipt| Posting::Hold(receipt.hold_update(HoldAction::Release).expect("it is a hold"));
    let batch = vec![Posting::Charge(request()), posting(&first)];
    let mut outcomes = store.commit(batch, later(40)).await.unwrap();
    let late = updated(outcomes.remove(1)).expect("the hold exists");
    assert_eq!((late.changed, late.hold.settled), (false, None));
    let Decision::Accepted(second) = super::scene::decision(outcomes.remove(0)) else { panic!("the lease is over") };
    let batch = vec![posting(&second), Posting::Charge(request()), posting(&second)];
    let mut outcomes = store.commit(batch, later(41)).await.unwrap();
    assert_eq!(updated(outcomes.remove(2)).map(|updated| updated.changed), Some(false));
    let Decision::Accepted(third) = super::scene::decision(outcomes.remove(1)) else { panic!("the key is forgotten") };
    assert_eq!((third.repeated, number(&third), third.balance), (false, 1, atoms(40)));
    assert_eq!(updated(outcomes.remove(0)).map(|updated| updated.changed), Some(true));
    assert_eq!(read(&*store, held(&third).id).await.settled, None);
    assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
}

/// 32 requests race with one request id: one hold is opened, and all get it.
pub async fn a_request_id_is_held_once(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1_000).await;
    let requests = (0..32).map(|_| holding(charge_named(customer.key, 60, "r1"))).collect();
    let decisions = all_at_once(&store, requests).await;
    let open = store.open_holds(&customer.id, 100).await.unwrap();
    assert_eq!(open.len(), 1);
    let mut first_tries = 0;
    for decision in &decisions {
        let Decision::Accepted(receipt) = decision else { panic!("{decision:?}") };
        assert_eq!((held(receipt).id, held(receipt).amount, receipt.balance), (open[0].id, atoms(60), atoms(940)));
        first_tries += usize::from(!receipt.repeated);
    }
    assert_eq!(first_tries, 1);
    assert_eq!(amounts(&*store, &customer.id).await, (940, 60, 0));
}
