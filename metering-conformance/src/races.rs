//! Contracts for concurrent callers: many tasks on real threads, with results as if they had run one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metering_core::access::RateLimits;
use metering_core::money::{Credits, LedgerKind};
use metering_core::store::{Created, NewAccount, Posted, Store};
use metering_core::{Charge, Decision};
use tokio::task::JoinSet;

use super::scene::{
    ALWAYS, BASE, NOON, Verified, accepted, adjustment, all_daily_totals, assert_verified, atoms, balance, charge,
    charge_named, charge_on, commit, commit_refund, customer, customer_with, decide, entry, line, new_account, new_key,
    racing, report, totals,
};

const TASKS: usize = 64;

/// Commits all `charges` concurrently, each in its own task.
pub(super) async fn all_at_once(store: &Arc<dyn Store>, charges: Vec<Charge>) -> Vec<Decision> {
    racing(store, charges, |store, charge| async move { decide(&*store, charge, NOON).await }).await
}

pub(super) fn accepted_count(decisions: &[Decision]) -> usize {
    decisions.iter().filter(|decision| matches!(decision, Decision::Accepted(_))).count()
}

/// 64 requests race for a balance that covers 20: exactly 20 are accepted.
pub async fn a_balance_is_spent_once(store: Verified<dyn Store>) {
    let customer = customer(&*store, 20 * BASE).await;
    let decisions = all_at_once(&store, vec![charge(customer.key, BASE); TASKS]).await;
    assert_eq!(accepted_count(&decisions), 20);
    let mut balances: Vec<i64> = decisions
        .iter()
        .filter_map(|decision| match decision {
            Decision::Accepted(receipt) => Some(receipt.balance.atoms()),
            Decision::Refused(_) => None,
        })
        .collect();
    balances.sort_unstable();
    assert!(balances.into_iter().eq((0..20).map(|left| left * BASE)), "each saw a different balance");
    assert_eq!(balance(&*store, &customer.id).await, 0);
}

/// 64 requests race for a rate limit of 20: exactly 20 are accepted.
pub async fn a_cap_is_filled_once(store: Arc<dyn Store>) {
    let limits = RateLimits::per_day(20);
    let customer = customer_with(&*store, 1_000 * BASE, limits).await;
    let decisions = all_at_once(&store, vec![charge(customer.key, BASE); TASKS]).await;
    assert_eq!(accepted_count(&decisions), 20);
    assert_eq!(balance(&*store, &customer.id).await, 980 * BASE);
}

/// 64 requests race with one request id: one is charged, and all get the same result.
pub async fn a_request_id_is_charged_once(store: Arc<dyn Store>) {
    let customer = customer(&*store, 1_000 * BASE).await;
    let decisions = all_at_once(&store, vec![charge_named(customer.key, BASE, "r1"); TASKS]).await;
    let mut first_tries = 0;
    for decision in &decisions {
        let Decision::Accepted(receipt) = decision else { panic!("{decision:?}") };
        assert_eq!((receipt.charged, receipt.balance), (atoms(BASE), atoms(999 * BASE)));
        first_tries += usize::from(!receipt.repeated);
    }
    assert_eq!(first_tries, 1);
    assert_eq!(balance(&*store, &customer.id).await, 999 * BASE);
}

/// Overlapping batches with many accounts and lines in opposite orders: nothing is lost and nothing deadlocks.
pub async fn overlapping_batches_lose_nothing(store: Verified<dyn Store>) {
    let mut customers = Vec::new();
    for _ in 0..6 {
        customers.push(customer(&*store, 10_000 * BASE).await);
    }
    racing(&store, 0..TASKS, |store, task| {
        let mut keys: Vec<_> = customers.iter().map(|customer| customer.key).collect();
        keys.rotate_left(task % 6);
        if task % 2 == 0 {
            keys.reverse();
        }
        let template = format!("/{}", task % 3);
        async move {
            let charges = keys.into_iter().map(|key| charge_on(key, BASE, line(&template))).collect();
            assert_eq!(accepted_count(&commit(&*store, charges, NOON).await), 6);
        }
    })
    .await;
    for customer in &customers {
        assert_eq!(totals(&*store, &customer.id).await.used, atoms(64 * BASE));
        let report = report(&*store, &customer.id, ALWAYS).await;
        assert_eq!((report.by_day[0].usage_events, report.by_endpoint.len()), (64, 3));
    }
    assert_eq!(all_daily_totals(&*store).await.len(), 18);
}

/// Many signups race for one email: exactly one gets it.
pub async fn an_email_is_given_once(store: Arc<dyn Store>) {
    let results = racing(&store, 0..TASKS, |store, task| {
        let email = if task % 2 == 0 { "name@example.com" } else { "NAME@Example.com" };
        let new = NewAccount { email: Some(email.parse().unwrap()), entries: vec![adjustment(1)], ..new_account() };
        async move { store.create_account(new).await.unwrap() }
    })
    .await;
    let made = results.iter().filter(|result| matches!(result, Created::Account(_))).count();
    let taken = results.iter().filter(|result| **result == Created::EmailTaken).count();
    assert_eq!((made, taken), (1, TASKS - 1));
    assert_eq!(store.accounts(None, 1_000).await.unwrap().items.len(), 1);
    assert_eq!(store.ledger(None, 1_000).await.unwrap().items.len(), 1);
}

/// Top-ups race with charges and refunds: the totals are exact.
pub async fn top_ups_charges_and_refunds_add_up(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1_000 * BASE).await;
    racing(&store, 0..TASKS, |store, task| {
        let customer = customer.clone();
        async move {
            match task % 3 {
                0 => {
                    let topup = entry(LedgerKind::PurchaseTopup, 5 * BASE);
                    let result = store.post_entry(&customer.id, topup, NOON).await.unwrap();
                    assert!(matches!(result, Posted::Account(_)));
                }
                1 => drop(accepted(&*store, charge(customer.key, 2 * BASE), NOON).await),
                _ => {
                    let receipt = accepted(&*store, charge(customer.key, 7 * BASE), NOON).await;
                    commit_refund(&*store, receipt.into_refund().expect("there is a charge to refund"), NOON)
                        .await
                        .expect("the amount is in range");
                }
            }
        }
    })
    .await;
    // Of 64 tasks, 22 top up, 21 charge, and 21 charge and refund.
    let totals = totals(&*store, &customer.id).await;
    assert_eq!((totals.purchased, totals.used), (atoms(110 * BASE), atoms(42 * BASE)));
    assert_eq!(totals.balance, atoms((1_000 + 110 - 42) * BASE));
}

/// No charge that starts after the revocation has returned is accepted.
pub async fn no_charge_is_accepted_after_revocation_returned(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1_000_000 * BASE).await;
    let revoked = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for _ in 0..8 {
        let (store, revoked, key) = (Arc::clone(&store), Arc::clone(&revoked), customer.key);
        tasks.spawn(async move {
            loop {
                let known = revoked.load(Ordering::SeqCst);
                let decision = decide(&*store, charge(key, BASE), NOON).await;
                if known {
                    assert!(matches!(decision, Decision::Refused(_)), "accepted after the revocation");
                    return;
                }
            }
        });
    }
    accepted(&*store, charge(customer.key, BASE), NOON).await;
    store.revoke_account(&customer.id, NOON).await.unwrap().expect("the account exists");
    let spent = balance(&*store, &customer.id).await;
    revoked.store(true, Ordering::SeqCst);
    tasks.join_all().await;
    assert_eq!(balance(&*store, &customer.id).await, spent);
}

/// Many key replacements race: all succeed, and one key is live in the end.
pub async fn rotations_leave_one_live_key(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let keys: Vec<_> = (0..16).map(|_| new_key()).collect();
    racing(&store, keys.clone(), |store, key| {
        let id = customer.id.clone();
        async move { store.replace_key(&id, key, NOON).await.unwrap().expect("the account is live") }
    })
    .await;
    let live = store.live_keys(&keys, NOON).await.unwrap();
    assert_eq!(live.iter().filter(|live| **live).count(), 1);
    assert_eq!(store.live_keys(&[customer.key], NOON).await.unwrap(), [false]);
}

/// 16 callers replace the same live key: one succeeds, and its key is the live one.
pub async fn a_live_key_is_replaced_by_one_caller(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let keys: Vec<_> = (0..16).map(|_| new_key()).collect();
    let results = racing(&store, keys.clone(), |store, key| {
        let old = customer.key;
        async move { (key, store.replace_live_key(&old, key, NOON).await.unwrap().is_some()) }
    })
    .await;
    let replaced: Vec<_> = results.into_iter().filter(|(_, replaced)| *replaced).collect();
    assert_eq!(replaced.len(), 1);
    let live: Vec<_> = keys.iter().map(|key| *key == replaced[0].0).collect();
    assert_eq!(store.live_keys(&keys, NOON).await.unwrap(), live);
}

/// A report read during writes is consistent: its account, days and endpoints agree.
pub async fn usage_report_is_one_snapshot(store: Arc<dyn Store>) {
    let customer = customer(&*store, 1_000_000 * BASE).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        let (store, done, id) = (Arc::clone(&store), Arc::clone(&done), customer.id.clone());
        readers.spawn(async move {
            let mut reads = 0;
            while !done.load(Ordering::SeqCst) || reads < 3 {
                let report = report(&*store, &id, ALWAYS).await;
                let totals = report.account.totals;
                let days = Credits::checked_sum(report.by_day.iter().map(|day| day.credits_used));
                let endpoints = Credits::checked_sum(report.by_endpoint.iter().map(|endpoint| endpoint.credits_used));
                assert_eq!((days, endpoints), (Some(totals.used), Some(totals.used)));
                assert_eq!(report.credits_added, totals.granted);
                assert_eq!(totals.balance, totals.granted.checked_sub(totals.used).unwrap());
                assert_verified(&*store).await;
                reads += 1;
            }
        });
    }
    racing(&store, 0..4, |store, task| {
        let customer = customer.clone();
        async move {
            for n in 0..25 {
                let template = format!("/{}", (task + n) % 4);
                let receipt = accepted(&*store, charge_on(customer.key, BASE + n, line(&template)), NOON).await;
                if n % 3 == 0 {
                    commit_refund(&*store, receipt.into_refund().expect("there is a charge to refund"), NOON)
                        .await
                        .expect("the amount is in range");
                }
                if n % 5 == 0 {
                    store.post_entry(&customer.id, adjustment(n), NOON).await.unwrap();
                }
            }
        }
    })
    .await;
    done.store(true, Ordering::SeqCst);
    readers.join_all().await;
}

/// Ledger numbers are unique and in the order of writing, with any number of writers.
pub async fn concurrent_ledger_entries_have_ascending_numbers(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 0).await, customer(&*store, 0).await);
    racing(&store, 0..TASKS, |store, task| {
        let id = if task % 2 == 0 { first.id.clone() } else { second.id.clone() };
        async move { store.post_entry(&id, adjustment(1), NOON).await.unwrap() }
    })
    .await;
    let entries = store.ledger(None, 1_000).await.unwrap().items;
    assert_eq!(entries.len(), TASKS);
    assert!(entries.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_eq!((balance(&*store, &first.id).await, balance(&*store, &second.id).await), (32, 32));
}
