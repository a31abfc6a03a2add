//! Contracts for budgets of keys with holds: held credits count, and uncaptured credits can be used again.

use std::sync::Arc;

use metering_core::Refusal;
use metering_core::access::{BudgetReset, KeyTerms};
use metering_core::charging::{HoldAction, Posting};
use metering_core::store::{Store, TermsChange};

use super::hold_scene::{
    FALLBACK, LEASE, act, amounts, capture, capture_in_full, hold, later, open, open_at, update, update_at_once,
};
use super::key_scene::{Issued, budget, caller, change, change_at, issue, manager, revoke, spent, status};
use super::races::{accepted_count, all_at_once};
use super::scene::{
    Customer, DAY, NOON, Verified, accepted, account, assert_verified, atoms, charge, customer, refused,
};

const PLENTY: i64 = 1_000_000;

/// A chain of keys with these budgets, from the top down.
async fn chain(store: &dyn Store, customer: &Customer, limits: &[i64]) -> Vec<Issued> {
    let mut keys: Vec<Issued> = Vec::new();
    for limit in limits {
        let terms = KeyTerms { budget: budget(*limit, None), ..manager() };
        keys.push(issue(store, &customer.id, keys.last(), terms).await);
    }
    keys
}

async fn all_spent(store: &dyn Store, customer: &Customer, keys: &[Issued]) -> Vec<i64> {
    let mut all = Vec::new();
    for key in keys {
        all.push(spent(store, &customer.id, &key.id).await);
    }
    all
}

/// A hold counts for its key and each parent key. A release gives all of it back, and a capture the rest.
pub async fn a_hold_counts_against_every_budget_above(store: Arc<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let keys = chain(&*store, &customer, &[300, 200, 100]).await;
    // action, captured amount
    let table = [
        (HoldAction::Release, 0),
        (capture(0), 0),
        (capture(25), 25),
        (HoldAction::CaptureFallback, FALLBACK),
        (HoldAction::Expire, FALLBACK),
        (capture(500), 50),
    ];
    let mut before = 0;
    for (action, captured) in table {
        let id = open(&*store, keys[2].secret, 50).await;
        assert_eq!(all_spent(&*store, &customer, &keys).await, [before + 50; 3], "{action:?}");
        assert_verified(&*store).await;
        act(&*store, &customer.id, id, HoldAction::Renew { until: later(31) }, later(1)).await;
        act(&*store, &customer.id, id, action, later(32)).await;
        before += captured;
        assert_eq!(all_spent(&*store, &customer, &keys).await, [before; 3], "{action:?}");
        assert_verified(&*store).await;
    }
}

/// A budget must cover a hold: a refused one changes nothing for any key, or for the account.
pub async fn a_budget_must_cover_a_hold(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let keys = chain(&*store, &customer, &[100, 100]).await;
    let first = open(&*store, keys[1].secret, 60).await;
    let before = account(&*store, &customer.id).await;
    let refusal = refused(&*store, hold(keys[1].secret, 41), NOON).await;
    let Refusal::KeyBudget { exhausted, .. } = refusal else { panic!("{refusal:?}") };
    let amounts = (exhausted.budget.limit, exhausted.spent, exhausted.required, exhausted.remaining());
    assert_eq!(amounts, (atoms(100), atoms(60), atoms(41), atoms(40)));
    assert_eq!(all_spent(&*store, &customer, &keys).await, [60, 60]);
    assert_eq!(account(&*store, &customer.id).await, before);
    open(&*store, keys[1].secret, 40).await;
    for request in [charge(keys[1].secret, 1), hold(keys[0].secret, 1)] {
        assert!(matches!(refused(&*store, request, NOON).await, Refusal::KeyBudget { .. }));
    }
    // Within one batch, returned credits are available to the next posting.
    let batch = vec![
        Posting::Charge(hold(keys[1].secret, 1)),
        update(&customer.id, first, capture(59)),
        Posting::Charge(hold(keys[1].secret, 1)),
        Posting::Charge(hold(keys[1].secret, 1)),
    ];
    let outcomes = store.commit(batch, NOON).await.unwrap();
    let decisions: Vec<_> = [0, 2, 3].map(|index: usize| format!("{:?}", outcomes[index]).contains("Accepted")).into();
    assert_eq!(decisions, [false, true, false], "{outcomes:?}");
    assert_eq!(all_spent(&*store, &customer, &keys).await, [100, 100]);
}

/// A new period starts without the holds of the one before, and credits that they return do not count in the new one.
pub async fn a_new_period_starts_without_earlier_holds(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let terms = |reset| KeyTerms { budget: budget(100, reset), ..manager() };
    let total = issue(&*store, &customer.id, None, terms(None)).await;
    let daily = issue(&*store, &customer.id, Some(&total), terms(Some(BudgetReset::Daily))).await;
    let tomorrow = NOON.saturating_add(DAY);
    let (released, captured, exceeded) = (
        open(&*store, daily.secret, 30).await,
        open(&*store, daily.secret, 20).await,
        open(&*store, daily.secret, 10).await,
    );
    assert_eq!(
        (spent(&*store, &customer.id, &daily.id).await, spent(&*store, &customer.id, &total.id).await),
        (60, 60)
    );
    let today = open_at(&*store, daily.secret, 40, tomorrow).await;
    let now = status(&*store, &customer.id, &daily.id, tomorrow).await.spent.expect("it has a budget");
    assert_eq!((now.since, now.amount), (tomorrow.day(), atoms(40)));
    assert_verified(&*store).await;
    act(&*store, &customer.id, released, HoldAction::Release, tomorrow).await;
    act(&*store, &customer.id, captured, capture(5), tomorrow).await;
    act(&*store, &customer.id, exceeded, capture_in_full(11), tomorrow).await;
    assert_eq!(spent(&*store, &customer.id, &daily.id).await, 40, "they are of another period");
    assert_eq!(spent(&*store, &customer.id, &total.id).await, 40 + 5 + 11, "a budget without periods counts all");
    act(&*store, &customer.id, today, capture(1), tomorrow).await;
    assert_eq!(spent(&*store, &customer.id, &daily.id).await, 1);
    // Before anything counts in the next period, the last one is still the newest.
    let last = open_at(&*store, daily.secret, 50, tomorrow).await;
    act(&*store, &customer.id, last, capture(2), tomorrow.saturating_add(DAY)).await;
    assert_eq!(spent(&*store, &customer.id, &daily.id).await, 3);
}

/// A budget that is set, or gets another period, while holds are open counts the holds of its period, including those
/// of child keys.
pub async fn a_budget_set_during_a_hold_counts_it(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let parent = issue(&*store, &customer.id, None, manager()).await;
    let key = issue(&*store, &customer.id, Some(&parent), caller()).await;
    let tomorrow = NOON.saturating_add(DAY);
    let old = open(&*store, key.secret, 1_000).await;
    let settled = open(&*store, key.secret, 500).await;
    act(&*store, &customer.id, settled, capture(3), NOON).await;
    let new = open_at(&*store, key.secret, 100, tomorrow).await;
    let of_parent = open_at(&*store, parent.secret, 10, tomorrow).await;
    accepted(&*store, charge(key.secret, 1), tomorrow).await;
    let set =
        |reset| TermsChange { limit: Some(Some(atoms(10_000))), limit_reset: Some(reset), ..TermsChange::default() };
    // NOON is on Saturday; both days are of one week and one month.
    for (reset, of_key) in [
        (None, 1_104),
        (Some(BudgetReset::Daily), 101),
        (Some(BudgetReset::Weekly), 1_104),
        (Some(BudgetReset::Daily), 101),
        (Some(BudgetReset::Monthly), 1_104),
    ] {
        for (issued, expected) in [(&key, of_key), (&parent, of_key + 10)] {
            change_at(&*store, &customer.id, &issued.id, set(reset), tomorrow).await;
            assert_eq!(spent(&*store, &customer.id, &issued.id).await, expected, "{reset:?}");
        }
        assert_verified(&*store).await;
    }
    act(&*store, &customer.id, old, HoldAction::Release, tomorrow).await;
    act(&*store, &customer.id, new, capture(40), tomorrow).await;
    assert_eq!(spent(&*store, &customer.id, &key.id).await, 44);
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, 54);
    act(&*store, &customer.id, of_parent, capture_in_full(16), tomorrow).await;
    assert_eq!(spent(&*store, &customer.id, &key.id).await, 44);
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, 60);
    // Settled holds do not count twice.
    for issued in [&key, &parent] {
        change_at(&*store, &customer.id, &issued.id, set(None), tomorrow).await;
    }
    assert_eq!(all_spent(&*store, &customer, &[key, parent]).await, [44, 60]);
}

/// A capture in full may exceed the budgets. Then they refuse everything until they are raised.
pub async fn a_capture_in_full_may_exceed_a_budget(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let keys = chain(&*store, &customer, &[1_000, 100]).await;
    let id = open(&*store, keys[1].secret, 60).await;
    accepted(&*store, charge(keys[1].secret, 20), NOON).await;
    assert!(act(&*store, &customer.id, id, capture_in_full(150), NOON).await.changed);
    assert_eq!(all_spent(&*store, &customer, &keys).await, [170, 170]);
    let refusal = refused(&*store, charge(keys[1].secret, 1), NOON).await;
    let Refusal::KeyBudget { exhausted, .. } = refusal else { panic!("{refusal:?}") };
    assert_eq!((exhausted.spent, exhausted.remaining()), (atoms(170), atoms(0)));
    accepted(&*store, charge(keys[0].secret, 5), NOON).await;
    let raised = TermsChange { limit: Some(Some(atoms(171))), ..TermsChange::default() };
    change(&*store, &customer.id, &keys[1].id, raised).await;
    accepted(&*store, charge(keys[1].secret, 1), NOON).await;
    assert_eq!(all_spent(&*store, &customer, &keys).await, [176, 171]);
    assert_eq!(amounts(&*store, &customer.id).await, (PLENTY - 176, 0, 176));
}

/// The holds of a key that is disabled or revoked still settle, and give back to the parent keys.
pub async fn a_revoked_keys_hold_returns_to_the_budgets_above(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let parent = chain(&*store, &customer, &[1_000]).await.remove(0);
    let keys = [
        issue(&*store, &customer.id, Some(&parent), caller()).await,
        issue(&*store, &customer.id, Some(&parent), caller()).await,
    ];
    let mut holds = Vec::new();
    for key in &keys {
        for _ in 0..4 {
            holds.push(open(&*store, key.secret, 50).await);
        }
    }
    let disabled = TermsChange { disabled: Some(true), ..TermsChange::default() };
    change(&*store, &customer.id, &keys[0].id, disabled).await;
    revoke(&*store, &customer.id, &keys[1].id).await;
    for key in &keys {
        assert_eq!(refused(&*store, hold(key.secret, 1), NOON).await, Refusal::UnknownKey);
    }
    let actions = [capture(20), HoldAction::Release, HoldAction::Expire, HoldAction::CaptureFallback];
    for (id, action) in holds.iter().zip(actions.into_iter().cycle()) {
        let renewed = act(&*store, &customer.id, *id, HoldAction::Renew { until: later(40) }, NOON).await;
        assert!(renewed.changed);
        assert!(act(&*store, &customer.id, *id, action, later(40)).await.changed, "{action:?}");
    }
    let used = 2 * (20 + 2 * FALLBACK);
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, used);
    assert_eq!(amounts(&*store, &customer.id).await, (PLENTY - used, 0, used));
}

/// Racing holds and captures share a budget: never exceeded, and exact when all is settled.
pub async fn racing_holds_share_a_budget(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let keys = chain(&*store, &customer, &[100, 90]).await;
    let decisions = all_at_once(&store, (0..32).map(|_| hold(keys[1].secret, 9)).collect()).await;
    assert_eq!(accepted_count(&decisions), 10);
    assert_eq!(all_spent(&*store, &customer, &keys).await, [90, 90]);
    let open = store.open_holds(&customer.id, 100).await.unwrap();
    let actions = [capture(4), HoldAction::Expire].into_iter().cycle();
    let postings = open.iter().chain(&open).zip(actions).map(|(hold, action)| update(&customer.id, hold.id, action));
    let results = update_at_once(&store, postings.collect(), NOON.saturating_add(LEASE)).await;
    let captured = results
        .iter()
        .filter(|updated| updated.changed)
        .map(|updated| updated.hold.settled.expect("it was settled").captured.atoms());
    let captured: Vec<i64> = captured.collect();
    assert_eq!(captured.len(), 10);
    let sum = captured.iter().sum::<i64>();
    assert_eq!(all_spent(&*store, &customer, &keys).await, [sum, sum]);
    assert_eq!(amounts(&*store, &customer.id).await, (PLENTY - sum, 0, sum));
}
