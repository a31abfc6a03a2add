//! Statements that are too long for one response.

use std::sync::Arc;

use metering_core::charging::Posting;
use metering_core::usage::DayRange;
use metering_core::{Charge, Clock, Credits, Day, MemoryStore, RateLimits, Service, Store, SystemClock};

const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

#[tokio::test]
async fn long_statement_continues_after_a_whole_day() {
    let store = Arc::new(MemoryStore::new());
    let service = Service::with_defaults(store.clone());
    let (account, key) = service.open_account("my-agent", Credits::from_whole(100).unwrap()).await.unwrap();
    store.set_limits(&account.id, RateLimits::NONE).await.unwrap();
    let now = SystemClock.now();
    // More rows than one response has, on a day within the first week read, and some in the second.
    for (back, routes) in [(13, 10_500), (12, 3), (2, 5), (0, 7)] {
        let charge =
            |route: usize| Posting::Charge(Charge::new(&key, Credits::from_atoms(1), "GET", &format!("/{route}")));
        store.commit((0..routes).map(charge).collect(), now.saturating_sub(DAY * back)).await.unwrap();
    }
    let (from, to) = (now.day().minus_days(13), now.day());
    let first = service.usage().daily(Some(&key), Some(from), Some(to)).await.unwrap();
    assert_eq!(first.usage.len(), 10_503);
    let next: Day = first.next.expect("more days follow").parse().unwrap();
    assert_eq!(next, now.day().minus_days(6));
    let second = service.usage().daily(Some(&key), Some(next), Some(to)).await.unwrap();
    assert_eq!((second.usage.len(), second.next), (12, None));
    let report = store.usage_report(&account.id, DayRange { first: from, last: to }).await.unwrap().unwrap();
    let rows = first.usage.iter().chain(&second.usage);
    let calls: u64 = report.by_day.iter().map(|day| day.usage_events).sum();
    assert_eq!(rows.clone().map(|row| row.calls).sum::<u64>(), calls);
    assert_eq!(Credits::checked_sum(rows.map(|row| row.credits_used)), Some(report.account.totals.used));
}
