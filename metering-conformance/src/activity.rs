//! Contracts for recent activity: newest first, bounded, and consistent with the totals.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use metering_core::access::KeyNumber;
use metering_core::clock::Timestamp;
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::service::ActivityQuery;
use metering_core::store::Store;
use metering_core::usage::{ACTIVITY_KEPT, Activity, ActivityKind};

use super::key_scene::{caller, issue};
use super::scene::{
    BASE, DAY, NOON, accepted, adjustment, assert_verified, atoms, balance, charge, charge_on, commit, commit_refund,
    customer, line, new_id, post,
};

async fn all_activity(store: &dyn Store, id: &metering_core::AccountId) -> Vec<Activity> {
    store.activity(id, u32::MAX).await.unwrap()
}

/// The entries of a query, and the `before` of the next page.
async fn search(
    store: &dyn Store,
    id: &metering_core::AccountId,
    query: &ActivityQuery,
    key: Option<KeyNumber>,
) -> (Vec<Activity>, Option<String>) {
    query.select(store.activity(id, query.needed()).await.unwrap(), key).unwrap()
}

fn after(seconds: u64) -> Timestamp {
    NOON.saturating_add(Duration::from_secs(seconds))
}

/// An entry has its kind, amount, number of calls, time and, if it is the same for all calls, the path.
pub async fn activity_entries_describe_their_change(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    let grant = NewLedgerEntry { description: "Welcome — “hello”".to_owned(), ..adjustment(10 * BASE) };
    post(&*store, &customer.id, grant, after(0)).await;
    let mut request = charge_on(customer.key, 2 * BASE, line("/price/{block}"));
    request.request_path = "/price/17".into();
    let receipt = accepted(&*store, request, after(1)).await;
    commit_refund(&*store, receipt.into_refund().expect("there is a charge to refund"), after(2))
        .await
        .expect("the refund succeeds");
    let entries = all_activity(&*store, &customer.id).await;
    let [refund, usage, ledger] = entries.as_slice() else { panic!("three entries: {entries:?}") };
    let entry = |kind, amount, calls, created_at| Activity {
        id: String::new(),
        kind,
        amount: atoms(amount),
        description: None,
        line: Some(line("/price/{block}")),
        request_path: Some("/price/17".into()),
        calls,
        payment: None,
        key: Some(KeyNumber::FIRST),
        created_at,
    };
    let without_id = |entry: &Activity| Activity { id: String::new(), ..entry.clone() };
    assert_eq!(without_id(refund), entry(ActivityKind::UsageRefund, 2 * BASE, 1, after(2)));
    assert_eq!(without_id(usage), entry(ActivityKind::Usage, -2 * BASE, 1, after(1)));
    let expected = Activity {
        description: Some("Welcome — “hello”".to_owned()),
        line: None,
        request_path: None,
        key: None,
        ..entry(ActivityKind::Ledger(LedgerKind::Adjustment), 10 * BASE, 0, after(0))
    };
    assert_eq!(without_id(ledger), expected);
}

/// Usage and ledger entries are one history, listed in reverse order of writing, regardless of the clocks.
pub async fn activity_is_newest_first(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    post(&*store, &customer.id, adjustment(100), after(10)).await;
    accepted(&*store, charge(customer.key, 1), after(20)).await;
    post(&*store, &customer.id, adjustment(2), after(20)).await;
    // A lagging clock.
    accepted(&*store, charge(customer.key, 3), after(15)).await;
    post(&*store, &customer.id, adjustment(4), after(5)).await;
    let amounts = |entries: Vec<Activity>| entries.iter().map(|entry| entry.amount.atoms()).collect::<Vec<_>>();
    assert_eq!(amounts(all_activity(&*store, &customer.id).await), [4, -3, 2, -1, 100]);
    for limit in 0..=6_u32 {
        let entries = amounts(store.activity(&customer.id, limit).await.unwrap());
        assert_eq!(entries, [4, -3, 2, -1, 100][..limit.min(5) as usize], "{limit}");
    }
}

/// Requests may share entries, but the sums of calls and amounts are complete.
pub async fn activity_entries_may_merge_but_totals_are_exact(store: Arc<dyn Store>) {
    let customer = customer(&*store, 1_000).await;
    let mut batch = Vec::new();
    for n in 0..30 {
        let mut request = charge_on(customer.key, n % 7, line(["/a", "/b/{x}"][usize::from(n % 3 == 0)]));
        request.request_path = if n % 3 == 0 { format!("/b/{n}").into() } else { "/a".into() };
        batch.push(request);
    }
    commit(&*store, batch, after(1)).await;
    let entries = all_activity(&*store, &customer.id).await;
    for (template, calls) in [("/a", 20), ("/b/{x}", 10)] {
        let of_line = || entries.iter().filter(|entry| entry.line == Some(line(template)));
        assert_eq!(of_line().map(|entry| entry.calls).sum::<u64>(), calls, "{template}");
        assert!(of_line().all(|entry| entry.kind == ActivityKind::Usage && entry.created_at == after(1)));
    }
    let sum: i64 = entries.iter().map(|entry| entry.amount.atoms()).sum();
    assert_eq!(sum, balance(&*store, &customer.id).await);
    // An entry has a path only if all its calls requested that path.
    let of_a = entries.iter().filter(|entry| entry.line == Some(line("/a")));
    assert!(of_a.clone().all(|entry| entry.request_path.as_deref() == Some("/a")));
    let of_b = entries.iter().filter(|entry| entry.line == Some(line("/b/{x}")));
    assert!(of_b.clone().all(|entry| entry.request_path.is_none() == (entry.calls > 1)));
}

/// Entry ids are unique and stable.
pub async fn ids_are_unique_and_stable(store: Arc<dyn Store>) {
    let customer = customer(&*store, 1_000).await;
    let mut known: Vec<(String, Activity)> = Vec::new();
    for second in 0..6 {
        let receipt = accepted(&*store, charge(customer.key, 5), after(second)).await;
        accepted(&*store, charge_on(customer.key, 1, line("/other")), after(second)).await;
        commit_refund(&*store, receipt.into_refund().expect("there is a charge to refund"), after(second)).await;
        post(&*store, &customer.id, adjustment(1), after(second)).await;
        let entries = all_activity(&*store, &customer.id).await;
        let ids: HashSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids.len(), entries.len(), "ids are unique");
        for (id, before) in &known {
            assert_eq!(entries.iter().find(|entry| entry.id == *id), Some(before), "entry {id} did not change");
        }
        known = entries.into_iter().map(|entry| (entry.id.clone(), entry)).collect();
    }
    assert_eq!(known.len(), 25);
}

/// An account sees only its own activity; an unknown account has none.
pub async fn activity_is_separate_per_account(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 10).await, customer(&*store, 10).await);
    commit(&*store, vec![charge(first.key, 1), charge(second.key, 2), charge(first.key, 1)], after(1)).await;
    let sum = |entries: Vec<Activity>| entries.iter().map(|entry| entry.amount.atoms()).sum::<i64>();
    assert_eq!(sum(all_activity(&*store, &first.id).await), 8);
    assert_eq!(sum(all_activity(&*store, &second.id).await), 8);
    assert_eq!(all_activity(&*store, &new_id()).await, []);
}

/// Recent activity can be searched by key, route and day, and read in pages that have every entry once.
pub async fn activity_is_searched_and_paged(store: Arc<dyn Store>) {
    let customer = customer(&*store, 1_000 * BASE).await;
    let child = issue(&*store, &customer.id, None, caller()).await;
    for (day, secret, template) in [
        (0, customer.key, "/a"),
        (0, child.secret, "/b/{x}"),
        (1, child.secret, "/a"),
        (2, customer.key, "/b/{x}"),
        (2, child.secret, "/b/{x}"),
    ] {
        accepted(&*store, charge_on(secret, BASE, line(template)), NOON.saturating_add(DAY * day)).await;
    }
    let all = ActivityQuery::from(100);
    let (entries, next) = search(&*store, &customer.id, &all, None).await;
    assert_eq!((entries.len(), next), (6, None), "five requests and the first credits");
    let on = |day: u32| Some(NOON.saturating_add(DAY * day).day());
    let of_b = ActivityQuery { routes: "GET /b/*".parse().unwrap(), ..all.clone() };
    // query, number of its key, positions in the whole list
    let table: [(ActivityQuery, Option<KeyNumber>, &[usize]); 6] = [
        (all.clone(), Some(child.number), &[0, 2, 3]),
        (of_b.clone(), None, &[0, 1, 3]),
        (of_b, Some(child.number), &[0, 3]),
        (ActivityQuery { from: on(1), ..all.clone() }, None, &[0, 1, 2]),
        (ActivityQuery { from: on(1), to: on(1), ..all.clone() }, None, &[2]),
        (ActivityQuery { before: Some(entries[3].id.clone()), ..all.clone() }, None, &[4, 5]),
    ];
    for (query, key, positions) in table {
        let expected: Vec<Activity> = positions.iter().map(|position| entries[*position].clone()).collect();
        assert_eq!(search(&*store, &customer.id, &query, key).await, (expected, None), "{query:?}");
    }
    let (mut listed, mut page) = (Vec::new(), ActivityQuery::from(4));
    loop {
        let (part, next) = search(&*store, &customer.id, &page, None).await;
        listed.extend(part);
        // Entries written between two pages do not shift the pages.
        accepted(&*store, charge(customer.key, BASE), NOON.saturating_add(DAY * 3)).await;
        let Some(next) = next else { break };
        page.before = Some(next);
    }
    assert_eq!(listed, entries);
}

/// After every commit, small or large, the newest entries are kept, and at most twice the minimum number in total.
/// Deleting old entries changes no total.
pub async fn activity_keeps_only_the_newest_entries(store: Arc<dyn Store>) {
    let (busy, quiet) = (customer(&*store, 1_000_000 * BASE).await, customer(&*store, 10 * BASE).await);
    accepted(&*store, charge(quiet.key, BASE), NOON).await;
    let bound = ACTIVITY_KEPT as usize;
    let few_by_few =
        [[bound - 25].as_slice(), &[1; 50], &[bound - 50], &[1; 50], &[bound + 25, 2 * bound + 1]].concat();
    // The time and size of each commit.
    let mut commits: Vec<(Timestamp, usize)> = Vec::new();
    for size in few_by_few {
        let at = commits.last().map_or(NOON, |(at, _)| *at).saturating_add(Duration::from_secs(1));
        // Distinct lines, so that no two requests can share an entry.
        let request = |n| charge_on(busy.key, BASE, line(&format!("/{n}")));
        commit(&*store, (0..size).map(request).collect(), at).await;
        commits.push((at, size));
        let entries = all_activity(&*store, &busy.id).await;
        let times: Vec<Timestamp> =
            entries.iter().filter(|entry| entry.kind == ActivityKind::Usage).map(|entry| entry.created_at).collect();
        assert!(times.len() <= 2 * bound, "{} entries are kept", times.len());
        let all_times = commits.iter().rev().flat_map(|(at, size)| std::iter::repeat_n(*at, *size));
        let last_times: Vec<Timestamp> = all_times.take(bound).collect();
        assert_eq!(times.get(..last_times.len()), Some(last_times.as_slice()), "the newest are kept");
        assert_eq!(entries.last().map(|entry| entry.calls), Some(0), "ledger entries are never deleted");
    }
    assert_eq!(store.activity(&busy.id, ACTIVITY_KEPT).await.unwrap().len(), bound);
    let requests = commits.iter().map(|(_, size)| i64::try_from(*size).unwrap()).sum::<i64>();
    assert_eq!(balance(&*store, &busy.id).await, (1_000_000 - requests) * BASE);
    assert_verified(&*store).await;
    assert_eq!(all_activity(&*store, &quiet.id).await.len(), 2, "other accounts' entries are kept");
}
