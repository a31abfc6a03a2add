//! Budgets: never exceeded under races; and the usage that counts against a budget that is set later.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{BudgetReset, KeyHash, KeyTerms};
use metering_core::charging::{Outcome, Posting};
use metering_core::store::{KeyStore, TermsChange};
use metering_core::{Decision, Refusal, Store};
use metering_sqlite::SqliteStore;

use super::{
    BASE, all_scopes, assert_sound, budget, calls, change, charge, charge_at, charge_of, create, hash, limit, spent,
    spent_calls, terms, two,
};
use crate::contract::fast_folder;
use crate::scene::{NOON, account, count, crash, created, execute};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Commits batches of charges with these keys until one is refused; returns how many were accepted with each.
async fn spend(store: Arc<SqliteStore>, keys: Vec<KeyHash>) -> Vec<i64> {
    let mut accepted = vec![0; keys.len()];
    for _ in 0..40 {
        let postings = keys.iter().map(|key| Posting::Charge(charge_of(*key, "/x", BASE))).collect();
        for (outcome, accepted) in store.commit(postings, NOON).await.unwrap().into_iter().zip(&mut accepted) {
            match outcome {
                Outcome::Decided(Decision::Accepted(_)) => *accepted += 1,
                Outcome::Decided(Decision::Refused(Refusal::KeyBudget { .. })) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    accepted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn budgets_that_two_handles_race_for_are_spent_exactly() {
    let folder = fast_folder();
    let stores = two(&folder.path().join("metering.db")).map(Arc::new);
    let (id, first) = account(&stores[0], 10_000).await;
    let top = create(&stores[0], &id, None, hash(1), KeyTerms { budget: budget(250, None), ..all_scopes() }).await;
    let mut below = Vec::new();
    for number in 2..5 {
        let terms = KeyTerms { budget: budget(100, Some(BudgetReset::Daily)), ..all_scopes() };
        below.push(create(&stores[1], &id, Some(&top.id), hash(number), terms).await);
    }
    let tasks = (0..8_usize).map(|task| {
        let store = stores[task % 2].clone();
        tokio::spawn(spend(store, vec![hash(2), first, hash(3), hash(4)]))
    });
    let mut accepted = [0; 4];
    for task in tasks.collect::<Vec<_>>() {
        for (sum, of_task) in accepted.iter_mut().zip(task.await.unwrap()) {
            *sum += of_task;
        }
    }
    let [a, of_first, b, c] = accepted;
    assert_eq!((a + b + c, of_first), (250, 320), "{accepted:?}");
    for (key, accepted) in below.iter().zip([a, b, c]) {
        assert!(accepted <= 100, "{accepted}");
        assert_eq!(spent_calls(&stores[1], key).await, accepted);
    }
    assert_eq!(spent_calls(&stores[0], &top).await, 250);
    assert_sound(&stores[0]).await;
}

/// Of usage with the key itself and its child keys, folded or not, and of no other key.
#[tokio::test]
async fn a_budget_set_later_starts_with_what_was_spent() {
    let (_folder, file, store) = created();
    let (id, first) = account(&store, 1_000).await;
    let top = create(&store, &id, None, hash(1), all_scopes()).await;
    let middle = create(&store, &id, Some(&top.id), hash(2), all_scopes()).await;
    create(&store, &id, Some(&middle.id), hash(3), all_scopes()).await;
    let secrets = [first, hash(1), hash(2), hash(3)];
    let yesterday = NOON.saturating_sub(DAY);
    let charge_all = async |store: &SqliteStore| {
        for (count, key) in [1, 3, 5, 7].into_iter().zip(secrets) {
            for _ in 0..count {
                charge_at(store, key, "/x", yesterday).await.unwrap();
                charge(store, key).await.unwrap();
            }
        }
    };
    charge_all(&store).await;
    drop(store);
    assert_eq!(count(&file, "charge_journal"), 0, "all is folded");
    let stores = two(&file);
    charge_all(&stores[0]).await;
    assert!(count(&file, "charge_journal") > 0);
    let refund = charge(&stores[1], hash(3)).await.unwrap().into_refund().unwrap();
    stores[0].commit(vec![Posting::Refund(refund)], NOON).await.unwrap();

    // budget of the middle key, what was spent of it
    let days = [(None, 48), (Some(BudgetReset::Daily), 24), (Some(BudgetReset::Monthly), 48)];
    for (reset, expected) in days {
        change(&stores[1], &middle, limit(50, reset)).await;
        assert_eq!(spent_calls(&stores[0], &middle).await, expected, "{reset:?}");
        assert_sound(&stores[0]).await;
    }
    change(&stores[0], &top, limit(61, None)).await;
    assert_eq!(spent_calls(&stores[1], &top).await, 60);
    charge(&stores[1], hash(3)).await.unwrap();
    let refused = charge(&stores[0], hash(2)).await;
    assert!(matches!(refused, Err(Refusal::KeyBudget { .. })), "the budget of the parent key: {refused:?}");
    charge(&stores[0], first).await.unwrap();
    assert_eq!(spent_calls(&stores[0], &middle).await, 49);

    let none = TermsChange { limit: Some(None), ..TermsChange::default() };
    change(&stores[1], &top, terms(none)).await;
    assert_eq!(spent(&stores[0], &top).await, None);
    assert_eq!(count(&file, "key_meter"), 1);
    charge(&stores[0], hash(2)).await.unwrap();
    assert!(charge(&stores[1], hash(2)).await.is_err(), "its own budget is spent");
    assert_sound(&stores[1]).await;
}

#[tokio::test]
async fn a_crash_neither_loses_nor_repeats_what_was_spent() {
    let (folder, file, store) = created();
    let (id, first) = account(&store, 10_000).await;
    let top = create(&store, &id, None, hash(1), KeyTerms { budget: budget(60, None), ..all_scopes() }).await;
    create(&store, &id, Some(&top.id), hash(2), all_scopes()).await;
    for number in 0..50_usize {
        charge(&store, [hash(1), hash(2)][number % 2]).await.unwrap();
        charge(&store, first).await.unwrap();
        if number % 7 > 0 {
            continue;
        }
        let copy = crash(&file, folder.path(), number);
        let found = SqliteStore::open(&copy).unwrap();
        let confirmed = i64::try_from(number).unwrap() + 1;
        assert_eq!(spent_calls(&found, &top).await, confirmed);
        assert_sound(&found).await;
        for _ in confirmed..60 {
            charge(&found, hash(2)).await.unwrap();
        }
        assert!(matches!(charge(&found, hash(1)).await, Err(Refusal::KeyBudget { .. })));
        assert_sound(&found).await;
    }
}

#[tokio::test]
async fn a_budget_that_lost_what_was_spent_is_a_discrepancy() {
    let (_folder, file, store) = created();
    let (id, _) = account(&store, 100).await;
    let top = create(&store, &id, None, hash(1), KeyTerms { budget: budget(60, None), ..all_scopes() }).await;
    create(&store, &id, Some(&top.id), hash(2), all_scopes()).await;
    for folded in [false, true] {
        for key in [hash(1), hash(2)] {
            for _ in 0..if folded { 15 } else { 2 } {
                charge(&store, key).await.unwrap();
            }
        }
    }
    assert!(count(&file, "usage_daily") > 0 && count(&file, "charge_journal") > 0, "in both");
    assert_sound(&store).await;
    execute(&file, "UPDATE key_meter SET spent = spent - 1");
    let found = store.verify().await.unwrap().restarted_budgets;
    let [found] = &found[..] else { panic!("{found:?}") };
    assert_eq!((found.amount, &found.account, found.computed), ("key_spent", &id, calls(34)));
    execute(&file, "UPDATE key_meter SET spent = spent + 2");
    assert_sound(&store).await;
    // The handle notices that the meter was changed.
    assert_eq!(
        store.key(&id, &top.id, NOON.day()).await.unwrap().unwrap().spent.unwrap().amount.atoms(),
        34 * BASE + 1
    );
    charge(&store, hash(1)).await.unwrap();
    assert_eq!(spent(&store, &top).await.unwrap().amount.atoms(), 35 * BASE + 1);
}
