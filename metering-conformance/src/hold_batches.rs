//! Contracts for holds of one batch, and of concurrent ones: decided in order, and no credit is held or settled twice.

use std::sync::Arc;

use metering_core::charging::{HoldAction, HoldTerms, HoldUpdated, Outcome, Posting, SettleReason};
use metering_core::money::Credits;
use metering_core::store::Store;
use metering_core::{Decision, Refusal};
use tokio::task::JoinSet;

use super::hold_scene::{
    FALLBACK, act, amounts, capture, capture_in_full, held, hold, later, open, read, settled, terms, try_update,
    update, update_at_once, updated,
};
use super::races::{accepted_count, all_at_once};
use super::scene::{NOON, Verified, accepted, all_daily_totals, atoms, charge, commit, customer, decide, racing};

const TASKS: usize = 32;

/// A hold may be opened and settled in one batch; another update of that batch changes nothing.
pub async fn a_hold_is_opened_and_settled_in_one_batch(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let terms = terms();
    let request = charge(customer.key, 60).with_hold(terms);
    let batch = vec![
        update(&customer.id, terms.id, capture(1)),
        Posting::Charge(request),
        update(&customer.id, terms.id, HoldAction::Renew { until: later(99) }),
        update(&customer.id, terms.id, capture(25)),
        update(&customer.id, terms.id, HoldAction::Release),
    ];
    let mut outcomes = store.commit(batch, NOON).await.unwrap().into_iter();
    assert_eq!(outcomes.next(), Some(Outcome::Hold(None)), "the hold is not open yet");
    let Some(Outcome::Decided(Decision::Accepted(receipt))) = outcomes.next() else { panic!("it is covered") };
    assert_eq!(receipt.balance, atoms(40));
    let after: Vec<_> = outcomes.map(|outcome| updated(outcome).expect("the hold was opened")).collect();
    let changes: Vec<_> = after.iter().map(|updated| (updated.changed, updated.balance.atoms())).collect();
    assert_eq!(changes, [(true, 40), (true, 75), (false, 75)]);
    let found = read(&*store, terms.id).await;
    assert_eq!((found.expires_at, found.settled), (later(99), settled(25, SettleReason::Report, NOON)));
    assert_eq!(found, after[2].hold);
    assert_eq!(store.open_holds(&customer.id, 10).await.unwrap(), []);
    assert_eq!(amounts(&*store, &customer.id).await, (75, 0, 25));
    let rows = all_daily_totals(&*store).await;
    assert_eq!((rows.len(), rows[0].calls, rows[0].credits_used), (1, 1, atoms(25)));
}

/// Two updates of one hold in one batch: each sees what the one before it did.
pub async fn updates_of_one_batch_are_decided_in_order(store: Verified<dyn Store>) {
    let renew = |seconds| HoldAction::Renew { until: later(seconds) };
    // actions at the end of the lease, which of them change the hold, what is captured (`None`: it stays open)
    let table = [
        ([capture(20), HoldAction::Release], [true, false], Some(20)),
        ([HoldAction::Release, capture(20)], [true, false], Some(0)),
        ([HoldAction::Expire, capture(20)], [true, false], Some(FALLBACK)),
        ([renew(60), HoldAction::Expire], [true, false], None),
        ([renew(60), renew(50)], [true, false], None),
        ([renew(60), capture(5)], [true, true], Some(5)),
        ([HoldAction::CaptureFallback, renew(60)], [true, false], Some(FALLBACK)),
        ([capture_in_full(99), capture_in_full(99)], [true, false], Some(99)),
    ];
    for (actions, changed, captured) in table {
        let customer = customer(&*store, 100).await;
        let id = open(&*store, customer.key, 60).await;
        let batch = actions.map(|action| update(&customer.id, id, action)).into();
        let outcomes = store.commit(batch, later(30)).await.unwrap();
        let found: Vec<_> = outcomes.into_iter().map(|outcome| updated(outcome).expect("the hold exists")).collect();
        assert!(found.iter().map(|updated| updated.changed).eq(changed), "{actions:?}");
        assert_eq!(read(&*store, id).await, found[1].hold);
        let (left, still_held, used) = captured.map_or((40, 60, 0), |captured| (100 - captured, 0, captured));
        assert_eq!(amounts(&*store, &customer.id).await, (left, still_held, used), "{actions:?}");
        assert_eq!(found[1].balance, atoms(left));
    }
}

/// Holds and charges of one batch take the last credits in order; a hold that is not covered leaves them to the next.
pub async fn a_batch_holds_the_last_credits_in_order(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let holds = [60, 41, 30, 11, 10, 1].map(|amount| hold(customer.key, amount));
    let decisions = commit(&*store, holds.to_vec(), NOON).await;
    let accepted = decisions.iter().map(|decision| matches!(decision, Decision::Accepted(_)));
    assert!(accepted.eq([true, false, true, false, true, false]));
    for decision in &decisions {
        let Decision::Refused(refusal) = decision else { continue };
        assert!(matches!(refusal, Refusal::InsufficientCredits { .. }), "{refusal:?}");
    }
    assert_eq!(amounts(&*store, &customer.id).await, (0, 100, 0));
    assert_eq!(store.open_holds(&customer.id, 10).await.unwrap().len(), 3);
}

/// Credits that a settled hold returns are available to later postings of the batch, not to earlier ones.
pub async fn a_settled_hold_makes_room_in_its_batch(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let id = open(&*store, customer.key, 100).await;
    let one = || Posting::Charge(hold(customer.key, 80));
    let batch =
        vec![one(), update(&customer.id, id, capture(20)), one(), one(), Posting::Charge(charge(customer.key, 1))];
    let outcomes = store.commit(batch, NOON).await.unwrap();
    let accepted = outcomes.iter().map(|outcome| match outcome {
        Outcome::Decided(decision) => matches!(decision, Decision::Accepted(_)),
        outcome => matches!(outcome, Outcome::Hold(Some(HoldUpdated { balance, .. })) if *balance == atoms(80)),
    });
    assert!(accepted.eq([false, true, true, false, false]), "{outcomes:?}");
    assert_eq!(amounts(&*store, &customer.id).await, (0, 80, 20));
}

/// One batch may settle holds of several accounts, and charge, hold and refund; each account gets its own.
pub async fn a_batch_settles_holds_of_several_accounts(store: Verified<dyn Store>) {
    let (one, two) = (customer(&*store, 100).await, customer(&*store, 200).await);
    let refund = accepted(&*store, charge(one.key, 30), NOON).await.into_refund().expect("there is a charge");
    let (of_one, of_two) = (open(&*store, one.key, 60).await, open(&*store, two.key, 60).await);
    let batch = vec![
        update(&two.id, of_two, capture(10)),
        Posting::Charge(hold(two.key, 150)),
        update(&one.id, of_one, HoldAction::Release),
        Posting::Refund(refund),
        Posting::Charge(charge(one.key, 5)),
        update(&one.id, of_two, HoldAction::Release),
        Posting::Charge(hold(one.key, 95)),
    ];
    let outcomes = store.commit(batch, NOON).await.unwrap();
    assert_eq!(outcomes[3], Outcome::Refunded(Some(atoms(100))));
    assert_eq!(outcomes[5], Outcome::Hold(None));
    assert_eq!(amounts(&*store, &one.id).await, (0, 95, 5));
    assert_eq!(amounts(&*store, &two.id).await, (40, 150, 10));
}

/// 32 tasks capture, release, expire and renew one hold: one of them settles it, and all see that settlement.
pub async fn a_hold_is_settled_by_one_caller(store: Verified<dyn Store>) {
    for round in 0..4 {
        let customer = customer(&*store, 100).await;
        let id = open(&*store, customer.key, 60).await;
        let action = |number: usize| match (number + round) % 5 {
            0 => capture(10),
            1 => HoldAction::Release,
            2 => HoldAction::Expire,
            3 => HoldAction::CaptureFallback,
            _ => capture_in_full(90),
        };
        let postings = (0..TASKS).map(|number| update(&customer.id, id, action(number))).collect();
        let results = update_at_once(&store, postings, later(30)).await;
        assert_eq!(results.iter().filter(|updated| updated.changed).count(), 1);
        let found = read(&*store, id).await;
        let captured = found.settled.expect("it was settled").captured.atoms();
        assert!(results.iter().all(|updated| updated.hold == found && updated.balance == atoms(100 - captured)));
        assert_eq!(amounts(&*store, &customer.id).await, (100 - captured, 0, captured));
        let rows = store.account_daily_totals(&customer.id, super::scene::ALWAYS).await.unwrap();
        assert_eq!((rows.len(), rows[0].calls, rows[0].credits_used), (1, 1, atoms(captured)));
    }
}

/// Renewals race with the end of a lease: the hold expires once, or is renewed and stays open.
pub async fn a_renewal_races_with_the_end_of_the_lease(store: Verified<dyn Store>) {
    let mut tasks = JoinSet::new();
    let customer = customer(&*store, 1_000).await;
    for _ in 0..TASKS / 4 {
        let id = open(&*store, customer.key, 60).await;
        let updates =
            [HoldAction::Renew { until: later(60) }, HoldAction::Expire].map(|action| update(&customer.id, id, action));
        for (renews, posting) in [true, false].into_iter().zip(updates) {
            let store = Arc::clone(&store);
            tasks.spawn(async move {
                let updated = try_update(&*store, posting, later(30)).await.expect("the hold exists");
                (id, renews, updated.changed)
            });
        }
    }
    let mut results = tasks.join_all().await;
    results.sort_unstable();
    let mut expired = 0;
    for pair in results.chunks(2) {
        let id = pair[0].0;
        // Either the renewal came first, or the end of the lease.
        assert_ne!(pair[0].2, pair[1].2, "{pair:?}");
        let (found, renewed) = (read(&*store, id).await, pair[1].2);
        assert_eq!((found.settled.is_none(), found.expires_at == later(60)), (renewed, renewed));
        expired += i64::from(!renewed);
    }
    let (balance, open, used) = amounts(&*store, &customer.id).await;
    let still_held = 60 * (i64::try_from(TASKS / 4).unwrap() - expired);
    assert_eq!((balance, open, used), (1_000 - still_held - expired * FALLBACK, still_held, expired * FALLBACK));
}

/// 32 tasks hold the last credits: exactly as many succeed as are covered.
pub async fn the_last_credits_are_held_once(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let decisions = all_at_once(&store, (0..TASKS).map(|_| hold(customer.key, 9)).collect()).await;
    assert_eq!(accepted_count(&decisions), 11);
    assert_eq!(amounts(&*store, &customer.id).await, (1, 99, 0));
    assert_eq!(store.open_holds(&customer.id, 100).await.unwrap().len(), 11);
}

/// Tasks that each hold and capture, among charges of others: nothing is lost, and nothing stays held.
pub async fn racing_holds_and_captures_add_up(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1_000_000).await;
    let results = racing(&store, 0..TASKS, |store, task| {
        let customer = customer.clone();
        async move {
            let mut used = 0;
            for number in 0..6_i64 {
                let id = open(&*store, customer.key, 1_000).await;
                let charged = decide(&*store, charge(customer.key, number), NOON).await;
                assert!(matches!(charged, Decision::Accepted(_)), "{charged:?}");
                let cost = 100 * number + i64::try_from(task).unwrap();
                let captured = act(&*store, &customer.id, id, capture(cost), NOON).await;
                assert_eq!((captured.changed, captured.excess), (true, Credits::ZERO));
                used += cost + number;
            }
            used
        }
    })
    .await;
    let used: i64 = results.into_iter().sum();
    assert_eq!(amounts(&*store, &customer.id).await, (1_000_000 - used, 0, used));
    let rows = all_daily_totals(&*store).await;
    assert_eq!(rows.iter().map(|row| row.calls).sum::<u64>(), 12 * u64::try_from(TASKS).unwrap());
    assert_eq!(store.open_holds(&customer.id, 10).await.unwrap(), []);
}

/// A charge with the terms of a hold is a hold with any lease: one whose lease ends immediately can be expired
/// immediately.
pub async fn a_lease_of_nothing_ends_at_once(store: Arc<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let terms = HoldTerms { lease: std::time::Duration::ZERO, ..terms() };
    let receipt = accepted(&*store, charge(customer.key, 60).with_hold(terms), NOON).await;
    assert_eq!(store.expired_holds(NOON, 10).await.unwrap().len(), 1);
    assert!(act(&*store, &customer.id, held(&receipt).id, HoldAction::Expire, NOON).await.changed);
    assert_eq!(amounts(&*store, &customer.id).await, (100 - FALLBACK, 0, FALLBACK));
}
