//! Contracts for the usage of held requests: booked once, on the day of the hold, when it is settled.

use std::time::Duration;

use metering_core::access::{KeyNumber, KeyTerms, RateLimits};
use metering_core::charging::{Hold, HoldAction, HoldId, Posting};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::store::Store;
use metering_core::usage::{Activity, ActivityKind, DailyTotal, UsageLine};
use metering_core::{Charge, Refusal};

use super::hold_scene::{
    FALLBACK, LEASE, act, amounts, capture, capture_in_full, held, hold, later, open, open_at, update,
};
use super::key_scene::{caller, issue, status};
use super::scene::{
    ALWAYS, DAY, MINUTE, NOON, Verified, accepted, all_daily_totals, atoms, charge, customer, customer_with, line,
    refused, report,
};

/// A hold on a line and a path.
fn hold_on(key: metering_core::access::KeyHash, amount: i64, line: UsageLine, path: &str) -> Charge {
    hold(key, amount).with_line(line).with_path(path)
}

/// Entries of activity that are not of the ledger, newest first.
async fn usage_entries(store: &dyn Store, id: &metering_core::access::AccountId) -> Vec<Activity> {
    let entries = store.activity(id, 1_000).await.unwrap();
    entries.into_iter().filter(|entry| entry.line.is_some()).collect()
}

/// A hold books no usage and writes no activity, also when it is renewed or is not expired yet.
pub async fn a_hold_alone_books_nothing(store: Verified<dyn Store>) {
    let customer = customer(&*store, 100).await;
    let key = issue(&*store, &customer.id, None, caller()).await;
    let id = open(&*store, key.secret, 60).await;
    act(&*store, &customer.id, id, HoldAction::Renew { until: later(90) }, later(10)).await;
    act(&*store, &customer.id, id, HoldAction::Expire, later(80)).await;
    assert_eq!(all_daily_totals(&*store).await, []);
    assert_eq!(usage_entries(&*store, &customer.id).await, []);
    let report = report(&*store, &customer.id, ALWAYS).await;
    assert_eq!((report.by_day, report.by_endpoint, report.by_key), (Vec::new(), Vec::new(), Vec::new()));
    assert_eq!(status(&*store, &customer.id, &key.id, NOON).await.usage.last_used, None);
    assert_eq!(amounts(&*store, &customer.id).await, (40, 60, 0));
}

/// Usage is booked on the day, the line and the key of the hold, as one call, also when it is captured on another day.
pub async fn captured_usage_is_booked_on_the_day_of_the_hold(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1_000).await;
    let key = issue(&*store, &customer.id, None, caller()).await;
    let evening = NOON.day().start().saturating_add(DAY).saturating_sub(Duration::from_secs(1));
    let morning = evening.saturating_add(Duration::from_secs(2));
    assert_ne!(evening.day(), morning.day());
    let open = async |key, amount, template: &str, at| {
        let request = hold_on(key, amount, line(template), "/a/path");
        held(&accepted(&*store, request, at).await).id
    };
    let ended = [
        (open(key.secret, 100, "/a", evening).await, capture(30), 30),
        (open(key.secret, 100, "/a", evening).await, capture(12), 12),
        (open(key.secret, 100, "/b", evening).await, HoldAction::CaptureFallback, FALLBACK),
        (open(customer.key, 100, "/a", evening).await, HoldAction::Release, 0),
        (open(customer.key, 100, "/b", evening).await, HoldAction::Expire, FALLBACK),
        (open(customer.key, 100, "/a", morning).await, capture(1), 1),
    ];
    let at = morning.saturating_add(LEASE);
    for (id, action, _) in ended {
        assert!(act(&*store, &customer.id, id, action, at).await.changed);
    }
    let row = |day: Timestamp, template: &str, key: KeyNumber, calls, atoms: i64| DailyTotal {
        account: customer.id.clone(),
        day: day.day(),
        line: line(template),
        key,
        calls,
        credits_used: Credits::from_atoms(atoms),
    };
    let mut found = all_daily_totals(&*store).await;
    found.sort_by_key(|total| (total.day, total.line.clone(), total.key));
    let expected = [
        row(evening, "/a", KeyNumber::FIRST, 1, 0),
        row(evening, "/a", key.number, 2, 42),
        row(evening, "/b", KeyNumber::FIRST, 1, FALLBACK),
        row(evening, "/b", key.number, 1, FALLBACK),
        row(morning, "/a", KeyNumber::FIRST, 1, 1),
    ];
    assert_eq!(found, expected);
    let used = ended.iter().map(|(_, _, captured)| captured).sum::<i64>();
    assert_eq!(amounts(&*store, &customer.id).await, (1_000 - used, 0, used));
    let usage = status(&*store, &customer.id, &key.id, at).await.usage;
    assert_eq!((usage.total, usage.daily, usage.last_used), (atoms(42 + FALLBACK), Credits::ZERO, Some(evening.day())));
    let report = report(&*store, &customer.id, ALWAYS).await;
    let days: Vec<_> = report.by_day.iter().map(|day| (day.day, day.usage_events)).collect();
    assert_eq!(days, [(morning.day(), 1), (evening.day(), 5)]);
}

/// Each way to settle a hold has its kind of entry, which was written when the hold was settled.
pub async fn settled_holds_are_listed_with_their_kind(store: Verified<dyn Store>) {
    let table = [
        (capture(20), ActivityKind::Usage, 20),
        (capture(0), ActivityKind::Usage, 0),
        (capture_in_full(80), ActivityKind::Usage, 80),
        (HoldAction::CaptureFallback, ActivityKind::Usage, FALLBACK),
        (HoldAction::Expire, ActivityKind::HoldExpired, FALLBACK),
        (HoldAction::Release, ActivityKind::HoldReleased, 0),
    ];
    let customer = customer(&*store, 1_000).await;
    let key = issue(&*store, &customer.id, None, caller()).await;
    for (count, (action, kind, captured)) in table.into_iter().enumerate() {
        let request = hold_on(key.secret, 60, line("/chat/{model}"), "/chat/small");
        let id = held(&accepted(&*store, request, NOON).await).id;
        act(&*store, &customer.id, id, action, later(40)).await;
        let entries = usage_entries(&*store, &customer.id).await;
        assert_eq!(entries.len(), count + 1, "one entry for {action:?}");
        let expected = Activity {
            id: entries[0].id.clone(),
            kind,
            amount: atoms(-captured),
            description: None,
            line: Some(line("/chat/{model}")),
            request_path: Some("/chat/small".into()),
            calls: 1,
            payment: None,
            key: Some(key.number),
            created_at: later(40),
        };
        assert_eq!(entries[0], expected);
    }
}

/// Holds that are settled in one batch may share an entry, but never one of another kind, line or key; calls and amounts
/// are complete.
pub async fn entries_of_settled_holds_are_separate_by_kind(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10_000).await;
    let mut batch = Vec::new();
    for number in 0..24 {
        let request = hold_on(customer.key, 60, line("/a"), &format!("/a/{}", number % 5));
        let id = held(&accepted(&*store, request, NOON).await).id;
        let actions = [capture(10), HoldAction::Release, HoldAction::Expire, HoldAction::CaptureFallback];
        batch.push(update(&customer.id, id, actions[number % 4]));
    }
    batch.push(Posting::Charge(charge(customer.key, 5).with_line(line("/a"))));
    store.commit(batch, later(30)).await.unwrap();
    let entries = usage_entries(&*store, &customer.id).await;
    let sums = [
        (ActivityKind::Usage, 13, -(60 + 6 * FALLBACK + 5)),
        (ActivityKind::HoldReleased, 6, 0),
        (ActivityKind::HoldExpired, 6, -6 * FALLBACK),
    ];
    for (kind, calls, amount) in sums {
        let of_kind = || entries.iter().filter(|entry| entry.kind == kind);
        assert_eq!(of_kind().map(|entry| entry.calls).sum::<u64>(), calls, "{kind}");
        assert_eq!(of_kind().map(|entry| entry.amount.atoms()).sum::<i64>(), amount, "{kind}");
        assert!(of_kind().all(|entry| entry.calls == 1 || entry.request_path.is_none()), "{entries:?}");
    }
    assert!(entries.iter().all(|entry| entry.calls > 0 && entry.created_at == later(30)));
    let totals = all_daily_totals(&*store).await;
    assert_eq!(totals.iter().map(|total| total.calls).sum::<u64>(), 25);
}

/// Settles a hold in each way that books usage: each in a separate commit, and all in one.
fn ends(ids: &[HoldId]) -> Vec<(HoldId, HoldAction)> {
    let actions = [capture(1), HoldAction::CaptureFallback, HoldAction::Release, HoldAction::Expire];
    ids.iter().copied().zip(actions.into_iter().cycle()).collect()
}

/// A hold counts towards the rate limits when it is opened. Its capture or release does not count in that minute or a
/// later one.
pub async fn rate_limits_count_a_hold_once(store: Verified<dyn Store>) {
    let limits = RateLimits::per_minute(6).and_per_day(9);
    let customer = customer_with(&*store, 10_000, limits).await;
    let key = issue(&*store, &customer.id, None, KeyTerms { limits, ..caller() }).await;
    let mut ids = Vec::new();
    for number in 1..=5 {
        let receipt = accepted(&*store, hold(key.secret, 60), NOON).await;
        assert_eq!((receipt.rate.minute.count, receipt.rate.day.count), (number, number));
        ids.push(held(&receipt).id);
    }
    // One at a time within the minute, and the rest in one batch in the next minute.
    let (early, late) = ids.split_at(2);
    for (id, action) in ends(early) {
        assert!(act(&*store, &customer.id, id, action, later(31)).await.changed);
    }
    let sixth = accepted(&*store, charge(key.secret, 1), later(40)).await;
    assert_eq!((sixth.rate.minute.count, sixth.rate.day.count), (6, 6));
    for secret in [key.secret, customer.key] {
        assert!(matches!(refused(&*store, hold(secret, 1), later(41)).await, Refusal::RateLimited { .. }));
    }
    let next = NOON.saturating_add(MINUTE);
    let batch = ends(late).into_iter().map(|(id, action)| update(&customer.id, id, action)).collect();
    store.commit(batch, next).await.unwrap();
    for secret in [customer.key, key.secret] {
        let first = accepted(&*store, charge(secret, 1), next).await;
        // The account and the key have counted six requests, and the second of these counts for both.
        assert_eq!((first.rate.minute.count, first.rate.day.count), (1, 7));
    }
    let last = accepted(&*store, charge(customer.key, 1), next).await;
    assert_eq!((last.rate.minute.count, last.rate.day.count), (3, 9));
    assert!(matches!(refused(&*store, hold(customer.key, 1), next).await, Refusal::RateLimited { .. }));
}

/// A hold of yesterday that is captured today does not count towards the limits of today, or of yesterday.
pub async fn a_capture_on_the_next_day_counts_for_no_window(store: Verified<dyn Store>) {
    let limits = RateLimits::per_day(3);
    let customer = customer_with(&*store, 10_000, limits).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(open_at(&*store, customer.key, 60, NOON).await);
    }
    let tomorrow = NOON.saturating_add(DAY);
    for (id, action) in ends(&ids[..2]) {
        act(&*store, &customer.id, id, action, tomorrow).await;
    }
    let receipt = accepted(&*store, charge(customer.key, 1), tomorrow).await;
    assert_eq!(receipt.rate.day.count, 1);
    let batch = vec![update(&customer.id, ids[2], capture(3)), Posting::Charge(charge(customer.key, 1))];
    store.commit(batch, tomorrow).await.unwrap();
    let receipt = accepted(&*store, charge(customer.key, 1), tomorrow).await;
    assert_eq!(receipt.rate.day.count, 3);
    assert!(matches!(refused(&*store, charge(customer.key, 1), tomorrow).await, Refusal::RateLimited { .. }));
    let Hold { settled, .. } = super::hold_scene::read(&*store, ids[2]).await;
    assert_eq!(settled.expect("it was captured").captured, atoms(3));
}
