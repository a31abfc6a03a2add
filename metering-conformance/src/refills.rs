//! Contracts for recurring credits: each account is refilled once in a period, up to the cap.

use std::sync::Arc;

use metering_core::access::{AccountId, BudgetReset, EmailStatus};
use metering_core::clock::Timestamp;
use metering_core::money::{LedgerEntry, LedgerKind, Refill};
use metering_core::store::{FullStore, NewAccount, RefillStore, Refilled, Store};
use tokio::task::JoinSet;

use super::hold_scene::{act, capture, open};
use super::operations::operations;
use super::scene::{
    ALWAYS, BASE, Customer, DAY, NOON, Verified, accepted, account, adjustment, atoms, balance, charge, create,
    customer, new_account, post, racing, totals,
};

const TASKS: usize = 16;

/// `days` days after the day on which all accounts of these contracts are created: 21 November 2026, a Saturday.
fn after(days: u32) -> Timestamp {
    NOON.saturating_add(DAY * days)
}

/// 1 December 2026.
fn december() -> Timestamp {
    after(10)
}

fn rule(credits: i64, cap: i64, every: BudgetReset) -> Refill {
    Refill { credits: atoms(credits), every, cap: atoms(cap) }
}

async fn set(store: &dyn RefillStore, credits: i64, cap: i64, every: BudgetReset) {
    store.set_refill(Some(rule(credits, cap, every))).await.unwrap();
}

/// Calls until every account was processed, and returns how many were refilled and what they got, in atoms.
async fn refill_all(store: &dyn RefillStore, now: Timestamp, limit: u32) -> (u64, i64) {
    let mut sum = (0, 0);
    for _ in 0..1_000 {
        let Refilled { accounts, credits, is_done } = store.refill_accounts(now, limit).await.unwrap();
        assert!(accounts <= u64::from(limit), "{accounts} accounts were refilled, but the limit is {limit}");
        sum = (sum.0 + accounts, sum.1 + credits.atoms());
        if is_done {
            return sum;
        }
    }
    panic!("refilling does not end");
}

async fn ledger(store: &dyn Store, id: &AccountId) -> Vec<LedgerEntry> {
    store.account_ledger(id, None, 1_000).await.unwrap().items
}

async fn refills(store: &dyn Store, id: &AccountId) -> Vec<i64> {
    let refills = ledger(store, id).await.into_iter().filter(|entry| entry.kind == LedgerKind::Refill);
    refills.map(|entry| entry.amount.atoms()).collect()
}

/// A rule is stored as given, and replaced and removed as a whole.
pub async fn a_refill_rule_is_stored_unchanged(store: Arc<dyn RefillStore>) {
    assert_eq!(store.refill().await.unwrap(), None);
    for every in BudgetReset::ALL {
        for (credits, cap) in [(1, i64::MAX), (i64::MAX, 1), (2, 3)] {
            let refill = Some(rule(credits, cap, every));
            store.set_refill(refill).await.unwrap();
            assert_eq!(store.refill().await.unwrap(), refill);
        }
    }
    store.set_refill(None).await.unwrap();
    assert_eq!(store.refill().await.unwrap(), None);
}

/// Without a rule, or after it was removed, no account is refilled.
pub async fn without_a_rule_nobody_is_refilled(store: Arc<dyn RefillStore>) {
    let customer = customer(&*store, 1).await;
    assert_eq!(store.refill_accounts(december(), 10).await.unwrap(), Refilled::NOTHING);
    set(&*store, 5, 5, BudgetReset::Monthly).await;
    store.set_refill(None).await.unwrap();
    assert_eq!(store.refill_accounts(december(), 10).await.unwrap(), Refilled::NOTHING);
    assert_eq!(balance(&*store, &customer.id).await, 1);
}

/// A refill is a ledger entry, counts as granted, and can be spent immediately.
pub async fn a_refill_is_a_grant_in_the_ledger(store: Verified<dyn RefillStore>) {
    let customer = customer(&*store, BASE).await;
    accepted(&*store, charge(customer.key, BASE), NOON).await;
    set(&*store, 2 * BASE, 2 * BASE, BudgetReset::Monthly).await;
    assert_eq!(refill_all(&*store, december(), 10).await, (1, 2 * BASE));
    let entry = ledger(&*store, &customer.id).await.pop().unwrap();
    assert_eq!((entry.kind, entry.amount.atoms(), entry.created_at), (LedgerKind::Refill, 2 * BASE, december()));
    assert_eq!((entry.description.as_str(), entry.payment), ("Refill for the period from 2026-12-01", None));
    let totals = totals(&*store, &customer.id).await;
    assert_eq!((totals.granted.atoms(), totals.purchased.atoms(), totals.balance.atoms()), (3 * BASE, 0, 2 * BASE));
    let activity = store.activity(&customer.id, 1).await.unwrap();
    assert_eq!(activity[0].amount.atoms(), 2 * BASE, "{activity:?}");
    let receipt = accepted(&*store, charge(customer.key, BASE), december()).await;
    assert_eq!(receipt.balance.atoms(), BASE);
}

/// An account gets the credits of the rule, but no more than it takes to reach the cap.
pub async fn a_refill_stops_at_the_cap(store: Verified<dyn RefillStore>) {
    // balance before, balance after
    let table = [(0, 10), (4, 14), (5, 15), (6, 15), (14, 15), (15, 15), (16, 16), (1_000, 1_000)];
    let mut customers = Vec::new();
    for (before, _) in table {
        customers.push(customer(&*store, before).await);
    }
    let debtor = create(&*store, NewAccount { entries: vec![adjustment(-7)], ..new_account() }).await;
    set(&*store, 10, 15, BudgetReset::Monthly).await;
    assert_eq!(refill_all(&*store, december(), 100).await, (6, 10 + 10 + 10 + 9 + 1 + 10));
    for ((before, after), customer) in table.into_iter().zip(customers) {
        assert_eq!(balance(&*store, &customer.id).await, after, "{before}");
    }
    assert_eq!(balance(&*store, &debtor.id).await, 3);
}

/// Credits that are held count up to the cap: they may come back.
pub async fn held_credits_count_up_to_the_cap(store: Verified<dyn RefillStore>) {
    let holder = customer(&*store, 100).await;
    let hold = open(&*store, holder.key, 80).await;
    set(&*store, 50, 110, BudgetReset::Monthly).await;
    assert_eq!(refill_all(&*store, december(), 10).await, (1, 10));
    assert_eq!(balance(&*store, &holder.id).await, 30);
    act(&*store, &holder.id, hold, capture(20), december()).await;
    assert_eq!(balance(&*store, &holder.id).await, 90, "60 of 80 come back");
}

/// Each account is refilled once in each period, no matter how often a refill is requested and what is used in between.
pub async fn an_account_is_refilled_once_in_a_period(store: Verified<dyn RefillStore>) {
    for (every, days) in [(BudgetReset::Daily, [1, 2]), (BudgetReset::Weekly, [2, 9]), (BudgetReset::Monthly, [10, 41])]
    {
        let customer = customer(&*store, 0).await;
        set(&*store, BASE, BASE, every).await;
        for (periods, day) in days.into_iter().enumerate() {
            for _ in 0..3 {
                refill_all(&*store, after(day), 10).await;
                assert_eq!(refills(&*store, &customer.id).await, vec![BASE; periods + 1], "{every} {day}");
            }
            accepted(&*store, charge(customer.key, BASE), after(day)).await;
        }
        store.revoke_account(&customer.id, NOON).await.unwrap();
    }
}

/// Many processes that refill at once do not refill an account twice, and charges meanwhile are not lost.
pub async fn concurrent_refills_are_written_once(store: Verified<dyn RefillStore>) {
    let mut customers = Vec::new();
    for _ in 0..20 {
        customers.push(customer(&*store, 5 * BASE).await);
    }
    set(&*store, BASE, 100 * BASE, BudgetReset::Monthly).await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let store = Arc::clone(&store);
        tasks.spawn(async move { refill_all(&*store, december(), 3).await });
    }
    racing(&store, customers.clone(), |store, Customer { key, .. }| async move {
        accepted(&*store, charge(key, BASE), december()).await
    })
    .await;
    let sums = tasks.join_all().await.into_iter();
    assert_eq!(sums.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1)), (20, 20 * BASE));
    for customer in customers {
        assert_eq!(refills(&*store, &customer.id).await, [BASE]);
        assert_eq!(balance(&*store, &customer.id).await, 5 * BASE);
    }
}

/// Accounts are processed oldest first, at most `limit` per call.
pub async fn refills_are_limited_and_continue(store: Arc<dyn RefillStore>) {
    let mut customers = Vec::new();
    for _ in 0..5 {
        customers.push(customer(&*store, 0).await);
    }
    set(&*store, 7, 7, BudgetReset::Monthly).await;
    for (done, refilled) in [2, 4, 5].into_iter().enumerate() {
        let (accounts, credits) = if done < 2 { (2, atoms(14)) } else { (1, atoms(7)) };
        let expected = Refilled { accounts, credits, is_done: done == 2 };
        assert_eq!(store.refill_accounts(december(), 2).await.unwrap(), expected);
        for (index, customer) in customers.iter().enumerate() {
            assert_eq!(balance(&*store, &customer.id).await, if index < refilled { 7 } else { 0 }, "{done} {index}");
        }
    }
    assert_eq!(store.refill_accounts(december(), 2).await.unwrap(), Refilled::NOTHING);
}

/// Accounts that were created in a period are refilled from the next one on.
pub async fn a_new_account_waits_for_the_next_period(store: Arc<dyn RefillStore>) {
    let first = Timestamp::from_unix_millis(december().day().start().unix_millis());
    let last_of_november = first.saturating_sub(std::time::Duration::from_millis(1));
    let old = create(&*store, NewAccount { created_at: last_of_november, ..new_account() }).await;
    let new = create(&*store, NewAccount { created_at: first, ..new_account() }).await;
    set(&*store, 5, 50, BudgetReset::Monthly).await;
    assert_eq!(refill_all(&*store, december(), 10).await, (1, 5));
    assert_eq!((balance(&*store, &old.id).await, balance(&*store, &new.id).await), (5, 0));
    assert_eq!(refill_all(&*store, after(41), 10).await, (2, 10));
    assert_eq!((balance(&*store, &old.id).await, balance(&*store, &new.id).await), (10, 5));
}

/// Revoked accounts get nothing, and their balances do not change.
pub async fn a_revoked_account_is_not_refilled(store: Arc<dyn RefillStore>) {
    let (revoked, live) = (customer(&*store, 1).await, customer(&*store, 1).await);
    store.revoke_account(&revoked.id, NOON).await.unwrap().unwrap();
    let before = account(&*store, &revoked.id).await;
    set(&*store, 5, 50, BudgetReset::Daily).await;
    assert_eq!(refill_all(&*store, december(), 10).await, (1, 5));
    assert_eq!(account(&*store, &revoked.id).await, before);
    assert_eq!(refills(&*store, &live.id).await, [5]);
}

/// Accounts whose email address is not verified yet get nothing for the period.
pub async fn an_unverified_account_gets_nothing(store: Arc<dyn RefillStore>) {
    let email_status = EmailStatus::Pending { free_credits: atoms(7) };
    let pending = NewAccount { email: "a@example.com".parse().ok(), email_status, ..new_account() };
    let pending = create(&*store, pending).await;
    let verified = EmailStatus::Verified { at: NOON };
    let verified = NewAccount { email: "b@example.com".parse().ok(), email_status: verified, ..new_account() };
    let verified = create(&*store, verified).await;
    set(&*store, 5, 50, BudgetReset::Monthly).await;
    assert_eq!(refill_all(&*store, december(), 10).await, (1, 5));
    assert_eq!((refills(&*store, &pending.id).await, refills(&*store, &verified.id).await), (vec![], vec![5]));
}

/// An account at the cap, or above it, gets nothing, and nothing later in the period either.
pub async fn an_account_at_the_cap_had_its_turn(store: Arc<dyn RefillStore>) {
    let (full, rich) = (customer(&*store, 10).await, customer(&*store, 99).await);
    set(&*store, 10, 10, BudgetReset::Monthly).await;
    assert_eq!(refill_all(&*store, december(), 10).await, (0, 0));
    for customer in [&full, &rich] {
        accepted(&*store, charge(customer.key, 10), december()).await;
    }
    assert_eq!(refill_all(&*store, after(11), 10).await, (0, 0));
    // Nor when the accounts are checked again because of a new rule.
    set(&*store, 1_000, 1_000, BudgetReset::Monthly).await;
    assert_eq!(refill_all(&*store, after(11), 10).await, (0, 0));
    assert_eq!(refill_all(&*store, after(41), 10).await, (2, 1_000 + 911));
}

/// A rule that is changed, or removed and set again, does not refill an account that was already processed in the
/// period of the new rule.
pub async fn a_changed_rule_does_not_refill_again(store: Arc<dyn RefillStore>) {
    let customer = customer(&*store, 0).await;
    set(&*store, 5, 100, BudgetReset::Monthly).await;
    // In the middle of the month: the periods of the rules below have begun before, and hold this day.
    assert_eq!(refill_all(&*store, after(20), 10).await, (1, 5));
    for every in BudgetReset::ALL {
        store.set_refill(None).await.unwrap();
        set(&*store, 9, 100, every).await;
        assert_eq!(refill_all(&*store, after(20), 10).await, (0, 0), "{every}");
    }
    set(&*store, 9, 100, BudgetReset::Daily).await;
    assert_eq!(refill_all(&*store, after(21), 10).await, (1, 9), "the next period is refilled by the new rule");
    assert_eq!(refills(&*store, &customer.id).await, [5, 9]);
}

/// A rule that replaces another while accounts are being refilled refills the rest, and no account twice.
pub async fn a_rule_changed_halfway_refills_the_rest(store: Arc<dyn RefillStore>) {
    let (first, second) = (customer(&*store, 0).await, customer(&*store, 0).await);
    set(&*store, 5, 100, BudgetReset::Monthly).await;
    assert!(!store.refill_accounts(december(), 1).await.unwrap().is_done);
    set(&*store, 9, 100, BudgetReset::Monthly).await;
    assert_eq!(refill_all(&*store, december(), 1).await, (1, 9));
    assert_eq!((refills(&*store, &first.id).await, refills(&*store, &second.id).await), (vec![5], vec![9]));
}

/// A process whose clock lags behind refills no account, neither during the newer period nor after it is done.
pub async fn a_lagging_clock_refills_nobody(store: Arc<dyn RefillStore>) {
    let (first, second) = (customer(&*store, 0).await, customer(&*store, 0).await);
    set(&*store, 5, 100, BudgetReset::Daily).await;
    assert!(!store.refill_accounts(after(8), 1).await.unwrap().is_done);
    assert_eq!(store.refill_accounts(after(7), 10).await.unwrap(), Refilled::NOTHING);
    assert_eq!(refill_all(&*store, after(8), 1).await, (1, 5));
    assert_eq!(store.refill_accounts(after(7), 10).await.unwrap(), Refilled::NOTHING);
    assert_eq!(refill_all(&*store, after(8), 1).await, (0, 0));
    // Not with a new rule either.
    set(&*store, 5, 100, BudgetReset::Daily).await;
    assert_eq!(refill_all(&*store, after(7), 10).await, (0, 0));
    for customer in [first, second] {
        assert_eq!(refills(&*store, &customer.id).await, [5]);
    }
}

/// The largest amounts are exact, and an account that can hold no more gets nothing.
pub async fn refills_at_the_end_of_the_range_are_exact(store: Verified<dyn RefillStore>) {
    let (empty, full) = (customer(&*store, 0).await, customer(&*store, i64::MAX).await);
    let debtor = create(&*store, NewAccount { entries: vec![adjustment(-5)], ..new_account() }).await;
    set(&*store, i64::MAX, i64::MAX, BudgetReset::Monthly).await;
    let refilled = store.refill_accounts(december(), 1).await.unwrap();
    assert_eq!(refilled, Refilled { accounts: 1, credits: atoms(i64::MAX), is_done: false });
    assert_eq!(refill_all(&*store, december(), 1).await, (1, i64::MAX));
    assert_eq!(balance(&*store, &empty.id).await, i64::MAX);
    assert_eq!(balance(&*store, &full.id).await, i64::MAX);
    assert_eq!(balance(&*store, &debtor.id).await, i64::MAX - 5);
    post(&*store, &debtor.id, adjustment(5), december()).await;
}

/// The report about the business counts refills as granted, on their day.
pub async fn refills_are_granted_in_the_report(store: Arc<dyn FullStore>) {
    customer(&*store, 1).await;
    set(&*store, 5, 100, BudgetReset::Monthly).await;
    refill_all(&*store, december(), 10).await;
    let report = operations(&*store, ALWAYS).await;
    let by_day: Vec<_> = report.by_day.iter().map(|day| (day.day, day.sold.atoms(), day.granted.atoms())).collect();
    assert_eq!(by_day, [(NOON.day(), 0, 1), (december().day(), 0, 5)]);
}
