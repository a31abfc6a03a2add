//! Contracts for usage reports and daily totals: they agree with each other and with the account.

use std::sync::Arc;

use metering_core::charging::CountedRoute;
use metering_core::clock::{Day, Timestamp};
use metering_core::money::{Credits, LedgerKind};
use metering_core::store::Store;
use metering_core::usage::{ClientSource, DailyTotal, DayRange, DayUsage, EndpointUsage, UsageLine};

use super::scene::{
    ALWAYS, BASE, DAY, NOON, accepted, account, adjustment, all_daily_totals, atoms, charge, charge_on, commit,
    customer, entry, line, post, report,
};

fn line_by(template: &str, method: &str, source: ClientSource) -> UsageLine {
    UsageLine { http_method: method.into(), source, ..line(template) }
}

/// The sum of the days, the sum of the endpoints and the account's used credits are equal.
pub async fn report_matches_the_account_totals(store: Arc<dyn Store>) {
    let customer = customer(&*store, 1_000_000 * BASE).await;
    let other = super::scene::customer(&*store, 1_000 * BASE).await;
    for (day, price) in [(0, 1), (1, 777_777), (1, 3), (5, 1_000_003)] {
        let at = NOON.saturating_add(DAY * day);
        let batch = vec![
            charge_on(customer.key, price, line("/a")),
            charge_on(customer.key, 2 * price, line_by("/a", "POST", ClientSource::Cli)),
            charge_on(other.key, 5, line("/a")),
            charge_on(customer.key, 3 * price, line("/b")),
        ];
        commit(&*store, batch, at).await;
    }
    let report = report(&*store, &customer.id, ALWAYS).await;
    assert_eq!(report.account, account(&*store, &customer.id).await);
    let days = Credits::checked_sum(report.by_day.iter().map(|day| day.credits_used)).unwrap();
    let endpoints = Credits::checked_sum(report.by_endpoint.iter().map(|endpoint| endpoint.credits_used)).unwrap();
    assert_eq!((days, endpoints), (report.account.totals.used, report.account.totals.used));
    let calls = report.by_day.iter().map(|day| day.usage_events).sum::<u64>();
    assert_eq!((calls, report.by_endpoint.iter().map(|endpoint| endpoint.call_count).sum::<u64>()), (12, 12));
    assert_eq!(report.credits_added, report.account.totals.granted);
    let mine = all_daily_totals(&*store).await.into_iter().filter(|total| total.account == customer.id);
    assert_eq!(Credits::checked_sum(mine.map(|total| total.credits_used)), Some(report.account.totals.used));
}

/// A report covers exactly its days, including both ends, for usage and for credits added.
pub async fn report_covers_only_its_days(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    let at = |day: u32| NOON.saturating_add(DAY * day);
    for day in 0..5_u32 {
        post(&*store, &customer.id, adjustment(1_000 * (i64::from(day) + 1)), at(day)).await;
        accepted(&*store, charge_on(customer.key, i64::from(day) + 1, line(&format!("/{day}"))), at(day)).await;
    }
    let range = DayRange { first: at(1).day(), last: at(3).day() };
    let report = report(&*store, &customer.id, range).await;
    let day = |day: u32| DayUsage { day: at(day).day(), usage_events: 1, credits_used: atoms(i64::from(day) + 1) };
    assert_eq!(report.by_day, [day(3), day(2), day(1)]);
    let templates: Vec<&str> = report.by_endpoint.iter().map(|endpoint| &*endpoint.route_template).collect();
    assert_eq!(templates, ["/3", "/2", "/1"]);
    assert_eq!(report.credits_added, atoms(2_000 + 3_000 + 4_000));
    assert_eq!(report.account.totals.used, atoms(15), "the account's totals cover all days");
}

/// Usage and ledger entries at the first and last millisecond of a UTC day belong to that day.
pub async fn day_includes_its_first_and_last_millisecond(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    let first = NOON.day().start();
    let last = first.saturating_add(DAY).saturating_sub(std::time::Duration::from_millis(1));
    for (at, amount) in [
        (first.saturating_sub(std::time::Duration::from_millis(1)), 1),
        (first, 10),
        (last, 100),
        (first.saturating_add(DAY), 1_000),
    ] {
        post(&*store, &customer.id, adjustment(amount), at).await;
        accepted(&*store, charge(customer.key, 0), at).await;
    }
    let today = DayRange { first: NOON.day(), last: NOON.day() };
    let report = report(&*store, &customer.id, today).await;
    assert_eq!(report.credits_added, atoms(110));
    assert_eq!(report.by_day, [DayUsage { day: NOON.day(), usage_events: 2, credits_used: Credits::ZERO }]);
}

/// Days without usage are not listed, and an empty range has no days.
pub async fn a_report_without_usage_is_empty(store: Arc<dyn Store>) {
    let customer = customer(&*store, 5 * BASE).await;
    accepted(&*store, charge(customer.key, BASE), NOON).await;
    let early = DayRange { first: Day::from_unix_days(0), last: Day::from_unix_days(9) };
    let backwards = DayRange { first: NOON.saturating_add(DAY).day(), last: NOON.day() };
    for range in [early, backwards] {
        let report = report(&*store, &customer.id, range).await;
        assert_eq!((report.by_day.len(), report.by_endpoint.len()), (0, 0), "{range:?}");
        assert_eq!(report.credits_added, Credits::ZERO, "{range:?}");
        assert_eq!(report.account.totals.balance, atoms(4 * BASE));
    }
}

/// Endpoints are ordered by credits, calls, template and method; sources of the same endpoint are added up.
pub async fn endpoints_are_ordered_and_merge_sources(store: Arc<dyn Store>) {
    let customer = customer(&*store, 1_000).await;
    let batch = [
        ("/cheap", "GET", ClientSource::Direct, 1),
        ("/twice", "GET", ClientSource::Direct, 2),
        ("/twice", "GET", ClientSource::Direct, 2),
        ("/once", "GET", ClientSource::Direct, 4),
        ("/z", "GET", ClientSource::Direct, 3),
        ("/a", "PUT", ClientSource::Direct, 3),
        ("/a", "GET", ClientSource::Direct, 3),
        ("/B", "GET", ClientSource::Direct, 3),
        ("/much", "GET", ClientSource::Direct, 10),
        ("/much", "GET", ClientSource::Mcp, 20),
        ("/much", "GET", ClientSource::Unknown, 40),
        ("/much", "GET", ClientSource::Cli, 80),
    ];
    let charges = batch
        .map(|(template, method, source, price)| charge_on(customer.key, price, line_by(template, method, source)));
    commit(&*store, charges.to_vec(), NOON).await;
    let endpoint = |template: &str, method: &str, call_count, credits| EndpointUsage {
        route_template: template.into(),
        http_method: method.into(),
        call_count,
        credits_used: atoms(credits),
    };
    let expected = [
        endpoint("/much", "GET", 4, 150),
        endpoint("/twice", "GET", 2, 4),
        endpoint("/once", "GET", 1, 4),
        endpoint("/B", "GET", 1, 3),
        endpoint("/a", "GET", 1, 3),
        endpoint("/a", "PUT", 1, 3),
        endpoint("/z", "GET", 1, 3),
        endpoint("/cheap", "GET", 1, 1),
    ];
    assert_eq!(report(&*store, &customer.id, ALWAYS).await.by_endpoint, expected);
    let sources = all_daily_totals(&*store).await.into_iter().filter(|total| &*total.line.route_template == "/much");
    assert_eq!(sources.count(), 4, "daily totals are kept per source");
}

/// Routes are listed by the number of requests of all accounts and kinds of clients, regardless of cost, in a range of
/// days.
pub async fn routes_are_ranked_by_the_requests_of_all_accounts(store: Arc<dyn Store>) {
    assert_eq!(store.route_calls(ALWAYS).await.unwrap(), []);
    let (first, second) = (customer(&*store, 1_000).await, customer(&*store, 1_000).await);
    let batch = vec![
        charge_on(first.key, 9, line_by("/a", "POST", ClientSource::Direct)),
        charge_on(first.key, 0, line("/b")),
        charge_on(first.key, 1, line_by("/b", "GET", ClientSource::Cli)),
        charge_on(second.key, 1, line("/b")),
        charge_on(second.key, 9, line("/a")),
    ];
    commit(&*store, batch, NOON).await;
    let next = NOON.saturating_add(DAY);
    commit(&*store, vec![charge_on(second.key, 1, line("/a")), charge_on(first.key, 1, line("/c"))], next).await;
    let ranked = async |first: Timestamp, last: Timestamp| {
        let calls = store.route_calls(DayRange { first: first.day(), last: last.day() }).await.unwrap();
        let words =
            |(route, calls): (CountedRoute, u64)| format!("{} {} {calls}", route.http_method, route.route_template);
        calls.into_iter().map(words).collect::<Vec<_>>()
    };
    assert_eq!(ranked(NOON, next).await, ["GET /b 3", "GET /a 2", "POST /a 1", "GET /c 1"]);
    assert_eq!(ranked(next, next).await, ["GET /a 1", "GET /c 1"]);
    assert_eq!(store.route_calls(ALWAYS).await.unwrap().len(), 4);
}

/// Credits added are the sum of all entries, of any kind and sign.
pub async fn added_credits_are_the_sum_of_the_ledger(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    for (kind, amount) in [
        (LedgerKind::PurchaseTopup, 700),
        (LedgerKind::SignupBonus, 50),
        (LedgerKind::Adjustment, -8),
        (LedgerKind::PurchasePaySignup, 1),
    ] {
        post(&*store, &customer.id, entry(kind, amount), NOON).await;
    }
    assert_eq!(report(&*store, &customer.id, ALWAYS).await.credits_added, atoms(743));
}

/// A sum out of range is an error, never a wrong number.
pub async fn out_of_range_additions_are_an_error(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    post(&*store, &customer.id, entry(LedgerKind::PurchaseTopup, i64::MAX), NOON).await;
    accepted(&*store, charge(customer.key, i64::MAX), NOON).await;
    post(&*store, &customer.id, adjustment(1), NOON).await;
    assert!(store.usage_report(&customer.id, ALWAYS).await.is_err());
    post(&*store, &customer.id, adjustment(-1), NOON).await;
    assert_eq!(report(&*store, &customer.id, ALWAYS).await.credits_added, Credits::MAX);
}

/// The totals of one account are those of its days and lines, in order, without those of other accounts.
pub async fn an_accounts_daily_totals_are_listed_in_order(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 1_000).await, customer(&*store, 1_000).await);
    let lines =
        [line("/b"), line("/a"), line_by("/a", "POST", ClientSource::Direct), line_by("/a", "GET", ClientSource::Cli)];
    for day in [1, 0, 2, 1] {
        let charges = |key| lines.iter().map(move |line| charge_on(key, 3, line.clone()));
        commit(&*store, charges(first.key).chain(charges(second.key)).collect(), NOON.saturating_add(DAY * day)).await;
    }
    let listed = store.account_daily_totals(&first.id, ALWAYS).await.unwrap();
    assert_eq!(listed.len(), 12);
    let key = |total: &DailyTotal| (total.day, total.line.clone());
    assert!(listed.windows(2).all(|pair| key(&pair[0]) < key(&pair[1])), "in order, each once: {listed:?}");
    let mut expected = all_daily_totals(&*store).await;
    expected.retain(|total| total.account == first.id);
    expected.sort_by_key(key);
    assert_eq!(listed, expected);
    let range = DayRange { first: NOON.saturating_add(DAY).day(), last: NOON.saturating_add(DAY).day() };
    expected.retain(|total| range.contains(total.day));
    assert_eq!(store.account_daily_totals(&first.id, range).await.unwrap(), expected);
    assert_eq!(store.account_daily_totals(&super::scene::new_id(), ALWAYS).await.unwrap(), []);
}

/// There is one daily total per account, day, route, method and source, over all commits.
pub async fn daily_totals_are_stored_by_day_and_line(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 1_000).await, customer(&*store, 1_000).await);
    let lines =
        [line("/a"), line("/A"), line_by("/a", "POST", ClientSource::Direct), line_by("/a", "GET", ClientSource::Cli)];
    for day in [1, 0, 1] {
        let charges = |key| lines.iter().map(move |line| charge_on(key, 2, line.clone()));
        let batch = charges(first.key).chain(charges(second.key)).chain(charges(first.key)).collect();
        commit(&*store, batch, NOON.saturating_add(DAY * day)).await;
    }
    let rows = all_daily_totals(&*store).await;
    assert_eq!(rows.len(), 16);
    assert!(rows.windows(2).all(|pair| pair[0].day <= pair[1].day), "days in ascending order");
    for row in rows {
        let commits = if row.day == NOON.day() { 1 } else { 2 };
        let charges = if row.account == first.id { 2 } else { 1 };
        assert!(lines.contains(&row.line));
        assert_eq!(
            (row.calls, row.credits_used.atoms()),
            (commits * charges, i64::try_from(commits * charges * 2).unwrap())
        );
    }
}
