//! Contracts for budgets: never exceeded, exact to the atom, and new in each period.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{BudgetReset, KeyTerms};
use metering_core::clock::{Day, Timestamp};
use metering_core::store::{Store, TermsChange};
use metering_core::{Decision, Refusal};

use super::key_scene::{Issued, budget, caller, change, change_at, issue, manager, spent, status};
use super::races::{accepted_count, all_at_once};
use super::scene::{
    BASE, DAY, NOON, Verified, accepted, assert_verified, atoms, balance, charge, commit, commit_refund, customer,
    refused,
};

const PLENTY: i64 = 1_000_000 * BASE;

fn terms(limit: i64, reset: Option<BudgetReset>) -> KeyTerms {
    KeyTerms { budget: budget(limit, reset), ..caller() }
}

/// The budget in the refusal of a charge: its limit, the credits used and the credits remaining, in atoms.
async fn exhausted(store: &dyn Store, key: &Issued, price: i64, now: Timestamp) -> (i64, i64, i64) {
    match refused(store, charge(key.secret, price), now).await {
        Refusal::KeyBudget { exhausted, .. } => {
            assert_eq!((exhausted.required, exhausted.at), (atoms(price), now));
            (exhausted.budget.limit.atoms(), exhausted.spent.atoms(), exhausted.remaining().atoms())
        }
        refusal => panic!("{refusal:?}"),
    }
}

/// A budget is spent to the last atom and never exceeded, in one batch and over batches.
pub async fn budget_is_exact_across_batches(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    for sizes in [vec![12], vec![4, 4, 4], vec![1; 12], vec![9, 3]] {
        for reset in [None, Some(BudgetReset::Daily), Some(BudgetReset::Monthly)] {
            let key = issue(&*store, &customer.id, None, terms(70, reset)).await;
            let mut count = 0;
            for size in &sizes {
                count += accepted_count(&commit(&*store, vec![charge(key.secret, 10); *size], NOON).await);
            }
            assert_eq!(count, 7, "{sizes:?}");
            assert_eq!(exhausted(&*store, &key, 1, NOON).await, (70, 70, 0));
            assert_eq!(spent(&*store, &customer.id, &key.id).await, 70);
            accepted(&*store, charge(key.secret, 0), NOON).await;
        }
    }
}

/// The remaining budget must cover the price: an expensive request is refused, and a cheaper one after it is not.
pub async fn budget_must_cover_the_price(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(100, None)).await;
    let decisions =
        commit(&*store, [60, 41, 30, 11, 10, 1].map(|price| charge(key.secret, price)).to_vec(), NOON).await;
    let accepted = decisions.iter().map(|decision| matches!(decision, Decision::Accepted(_)));
    assert!(accepted.eq([true, false, true, false, true, false]));
    assert_eq!(balance(&*store, &customer.id).await, PLENTY - 100);
    let none = issue(&*store, &customer.id, None, terms(0, None)).await;
    assert_eq!(exhausted(&*store, &none, 1, NOON).await, (0, 0, 0));
}

/// 64 requests race for a budget that covers 20: exactly 20 are accepted.
pub async fn racing_requests_spend_a_budget_once(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(20 * BASE, Some(BudgetReset::Daily))).await;
    let decisions = all_at_once(&store, vec![charge(key.secret, BASE); 64]).await;
    assert_eq!(accepted_count(&decisions), 20);
    assert_eq!(spent(&*store, &customer.id, &key.id).await, 20 * BASE);
    assert_eq!(balance(&*store, &customer.id).await, PLENTY - 20 * BASE);
}

/// Keys with small budgets race below one with a small budget: none is ever exceeded, and all agree with the balance.
pub async fn racing_keys_share_the_budget_above(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let parent = KeyTerms { budget: budget(100, None), ..manager() };
    let parent = issue(&*store, &customer.id, None, parent).await;
    let (mut children, mut charges) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let child = issue(&*store, &customer.id, Some(&parent), terms(35, None)).await;
        charges.extend((0..16).map(|number| charge(child.secret, 3 + number % 5)));
        children.push(child);
    }
    let decisions = all_at_once(&store, charges).await;
    let receipts = decisions.iter().filter_map(|decision| match decision {
        Decision::Accepted(receipt) => Some(receipt.charged.atoms()),
        Decision::Refused(Refusal::KeyBudget { .. }) => None,
        refusal @ Decision::Refused(_) => panic!("{refusal:?}"),
    });
    let charged: i64 = receipts.sum();
    assert!((98..=100).contains(&charged), "{charged} of 100 were spent, and the cheapest request costs 3");
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, charged);
    assert_eq!(balance(&*store, &customer.id).await, PLENTY - charged);
    let mut sum = 0;
    for child in &children {
        let of_child = spent(&*store, &customer.id, &child.id).await;
        assert!(of_child <= 35, "{of_child}");
        sum += of_child;
    }
    assert_eq!(sum, charged);
}

/// A budget is new at the first millisecond of its next period in UTC, not before.
pub async fn budget_starts_again_with_its_period(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    // NOON is on Saturday, 21 November.
    let table = [
        (Some(BudgetReset::Daily), Some("2026-11-22")),
        (Some(BudgetReset::Weekly), Some("2026-11-23")),
        (Some(BudgetReset::Monthly), Some("2026-12-01")),
        (None, None),
    ];
    for (reset, next) in table {
        let key = issue(&*store, &customer.id, None, terms(50, reset)).await;
        accepted(&*store, charge(key.secret, 45), NOON).await;
        let next = next.map(|next| next.parse::<Day>().unwrap().start());
        let late = NOON.saturating_add(DAY * 400);
        let last = next.map_or(late, |next| next.saturating_sub(Duration::from_millis(1)));
        assert_eq!(exhausted(&*store, &key, 6, last).await, (50, 45, 5), "{reset:?}");
        let refusal = refused(&*store, charge(key.secret, 6), last).await;
        let Refusal::KeyBudget { exhausted: budget, .. } = refusal else { panic!("{refusal:?}") };
        assert_eq!(budget.resets_at(), next);
        let Some(next) = next else { continue };
        accepted(&*store, charge(key.secret, 50), next).await;
        assert_eq!(exhausted(&*store, &key, 1, next).await, (50, 50, 0), "{reset:?}");
        let found = status(&*store, &customer.id, &key.id, next).await.spent.unwrap();
        assert_eq!((found.since, found.amount), (next.day(), atoms(50)));
    }
}

/// A node whose clock lags at the border of a period gets no second budget.
pub async fn lagging_clock_gets_no_second_budget(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(50, Some(BudgetReset::Daily))).await;
    let midnight = NOON.saturating_add(DAY).day().start();
    let lagging = midnight.saturating_sub(Duration::from_secs(1));
    accepted(&*store, charge(key.secret, 30), midnight).await;
    assert_eq!(exhausted(&*store, &key, 21, lagging).await, (50, 30, 20));
    let renamed = TermsChange { name: "renamed".parse().ok(), ..TermsChange::default() };
    change_at(&*store, &customer.id, &key.id, renamed, lagging).await;
    assert_eq!(exhausted(&*store, &key, 21, midnight).await, (50, 30, 20), "a new name changes no budget");
    accepted(&*store, charge(key.secret, 20), lagging).await;
    assert_eq!(exhausted(&*store, &key, 1, midnight).await, (50, 50, 0));
    let day_behind = midnight.saturating_sub(DAY);
    assert_eq!(exhausted(&*store, &key, 1, day_behind).await, (50, 50, 0), "a day behind");
    let wrong = day_behind.saturating_sub(Duration::from_millis(1));
    assert_eq!(exhausted(&*store, &key, 51, wrong).await, (50, 0, 50), "the newest reading was wrong");
}

/// A clock that was set back by more than a day begins the period of its day again, and its budget. The books still add
/// up: that is no discrepancy, no matter how often the clock changes.
pub async fn clock_set_back_begins_the_period_again(store: Arc<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(50, Some(BudgetReset::Daily))).await;
    let ahead = NOON.saturating_add(3 * DAY);
    for (price, now) in [(40, NOON), (30, ahead), (45, NOON)] {
        accepted(&*store, charge(key.secret, price), now).await;
    }
    assert_eq!(exhausted(&*store, &key, 6, NOON).await, (50, 45, 5), "the budget of the day, a second time");
    let found = store.verify().await.unwrap();
    assert_eq!(found.discrepancies, []);
    let budgets: Vec<_> = found.restarted_budgets.iter().map(|found| (found.recorded, found.computed)).collect();
    assert_eq!(budgets, [(atoms(45), atoms(115))]);
    accepted(&*store, charge(key.secret, 50), ahead).await;
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// After a clock was set back, a refund of a charge from before gives the budget no more than its limit.
pub async fn refund_takes_no_budget_below_zero(store: Arc<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(50, Some(BudgetReset::Daily))).await;
    let ahead = accepted(&*store, charge(key.secret, 40), NOON.saturating_add(DAY * 9)).await;
    accepted(&*store, charge(key.secret, 10), NOON).await;
    commit_refund(&*store, ahead.into_refund().unwrap(), NOON).await.unwrap();
    assert_eq!(spent(&*store, &customer.id, &key.id).await, 0);
    assert_eq!(exhausted(&*store, &key, 51, NOON).await, (50, 0, 50));
    assert_eq!(balance(&*store, &customer.id).await, PLENTY - 10);
}

/// A refund of a charge of the same period can be spent again; one of an earlier period cannot. All parent keys get it
/// back too.
pub async fn refund_returns_to_the_budget_of_its_period(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let parent = KeyTerms { budget: budget(100, None), ..manager() };
    let parent = issue(&*store, &customer.id, None, parent).await;
    let key = issue(&*store, &customer.id, Some(&parent), terms(50, Some(BudgetReset::Daily))).await;
    let (early, late) = (
        accepted(&*store, charge(key.secret, 20), NOON).await.into_refund().unwrap(),
        accepted(&*store, charge(key.secret, 30), NOON).await.into_refund().unwrap(),
    );
    commit_refund(&*store, early, NOON).await.unwrap();
    assert_eq!(exhausted(&*store, &key, 21, NOON).await, (50, 30, 20));
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, 30);
    accepted(&*store, charge(key.secret, 20), NOON).await;
    let tomorrow = NOON.saturating_add(DAY);
    accepted(&*store, charge(key.secret, 40), tomorrow).await;
    commit_refund(&*store, late, tomorrow).await.unwrap();
    assert_eq!(exhausted(&*store, &key, 11, tomorrow).await, (50, 40, 10), "yesterday's refund");
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, 60, "a budget without periods gets all refunds");
    let receipt = accepted(&*store, charge(key.secret, 10), tomorrow).await;
    let disabled = TermsChange { disabled: Some(true), ..TermsChange::default() };
    change_at(&*store, &customer.id, &key.id, disabled, tomorrow).await;
    commit_refund(&*store, receipt.into_refund().unwrap(), tomorrow).await.unwrap();
    assert_eq!(spent(&*store, &customer.id, &parent.id).await, 60, "a disabled key is refunded");
}

/// A budget that is set later starts with the usage of the key and its child keys in the period so far.
pub async fn budget_set_later_counts_what_was_spent(store: Arc<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let parent = issue(&*store, &customer.id, None, manager()).await;
    let middle = issue(&*store, &customer.id, Some(&parent), manager()).await;
    let below = issue(&*store, &customer.id, Some(&middle), caller()).await;
    // On the last day of October, on the first of November, on last Sunday, and today.
    for (days_ago, price) in [(21, 1_000), (20, 100), (6, 10), (0, 1)] {
        let at = NOON.saturating_sub(DAY * days_ago);
        for (key, times) in [(&parent, 1), (&middle, 2), (&below, 4)] {
            accepted(&*store, charge(key.secret, times * price), at).await;
        }
        accepted(&*store, charge(customer.key, 7), at).await;
    }
    let refunded = accepted(&*store, charge(below.secret, 500), NOON).await;
    commit_refund(&*store, refunded.into_refund().unwrap(), NOON).await.unwrap();
    let resets = [
        (None, 1_111),
        (Some(BudgetReset::Monthly), 111),
        (Some(BudgetReset::Weekly), 1),
        (Some(BudgetReset::Daily), 1),
    ];
    for (limit_reset, sum) in resets {
        for (key, times) in [(&parent, 7), (&middle, 6), (&below, 4)] {
            let limit = Some(Some(atoms(10_000)));
            let set = TermsChange { limit, limit_reset: Some(limit_reset), ..TermsChange::default() };
            let found = change(&*store, &customer.id, &key.id, set).await;
            assert_eq!(found.terms.budget, budget(10_000, limit_reset));
            assert_eq!(spent(&*store, &customer.id, &key.id).await, times * sum, "{limit_reset:?}");
        }
        assert_verified(&*store).await;
    }
    // 7, 6 and 4 are spent today, so the key in the middle refuses first.
    for (key, limit) in [(&parent, 20), (&middle, 10)] {
        let set = TermsChange { limit: Some(Some(atoms(limit))), ..TermsChange::default() };
        change(&*store, &customer.id, &key.id, set).await;
    }
    assert_eq!(exhausted(&*store, &below, 5, NOON).await, (10, 6, 4));
    accepted(&*store, charge(below.secret, 4), NOON).await;
    assert_eq!(exhausted(&*store, &parent, 10, NOON).await, (20, 11, 9));
}

/// A budget that is removed no longer limits; one that is raised or lowered keeps what was spent.
pub async fn budget_is_removed_raised_and_lowered(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(50, Some(BudgetReset::Daily))).await;
    let set = |limit: Option<i64>| TermsChange { limit: Some(limit.map(atoms)), ..TermsChange::default() };
    accepted(&*store, charge(key.secret, 50), NOON).await;
    change(&*store, &customer.id, &key.id, set(Some(80))).await;
    assert_eq!(exhausted(&*store, &key, 31, NOON).await, (80, 50, 30));
    change(&*store, &customer.id, &key.id, set(Some(40))).await;
    assert_eq!(exhausted(&*store, &key, 1, NOON).await, (40, 50, 0));
    let removed = change(&*store, &customer.id, &key.id, set(None)).await;
    assert_eq!(removed.terms.budget, None);
    assert_eq!(status(&*store, &customer.id, &key.id, NOON).await.spent, None);
    accepted(&*store, charge(key.secret, 1_000), NOON).await;
    let again = change(&*store, &customer.id, &key.id, set(Some(2_000))).await;
    assert_eq!(again.terms.budget, budget(2_000, None));
    assert_eq!(exhausted(&*store, &key, 951, NOON).await, (2_000, 1_050, 950));
}

/// A repeated request takes no budget, and needs none.
pub async fn repeated_request_takes_no_budget(store: Verified<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let key = issue(&*store, &customer.id, None, terms(10, None)).await;
    let named = || super::scene::charge_named(key.secret, 10, "r1").with_price(atoms(10));
    assert!(!accepted(&*store, named(), NOON).await.repeated);
    assert!(accepted(&*store, named(), NOON).await.repeated);
    assert_eq!(spent(&*store, &customer.id, &key.id).await, 10);
}
