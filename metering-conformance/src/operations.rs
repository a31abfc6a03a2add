//! Contracts for the report about the business: accounts, grants and usage. Those about sales are in `sales_report`.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metering_core::access::AccountId;
use metering_core::clock::{Day, Timestamp};
use metering_core::money::{Credits, LedgerKind};
use metering_core::operators::{AccountTotal, DaySales, OperationsReport};
use metering_core::store::{NewAccount, OperatorStore, Store};
use metering_core::usage::{ClientSource, DayRange, EndpointUsage, UsageLine};
use tokio::task::JoinSet;

use super::scene::{
    ALWAYS, BASE, Customer, DAY, NOON, accepted, adjustment, all_daily_totals, atoms, charge, charge_on, commit,
    commit_refund, create, customer, entry, line, new_account, post, racing,
};

/// The day of [`NOON`].
pub(super) const TODAY: DayRange = DayRange { first: NOON.day(), last: NOON.day() };

pub(super) async fn operations(store: &dyn OperatorStore, days: DayRange) -> OperationsReport {
    store.operations_report(days).await.unwrap()
}

/// A day with nothing to report.
pub(super) const fn quiet(day: Day) -> DaySales {
    let zero = Credits::ZERO;
    DaySales { day, new_accounts: 0, sold: zero, granted: zero, usage_events: 0, used: zero }
}

fn at(day: u32) -> Timestamp {
    NOON.saturating_add(DAY * day)
}

fn route(template: &str, call_count: u64, credits: i64) -> EndpointUsage {
    let credits_used = atoms(credits);
    EndpointUsage { route_template: template.into(), http_method: "GET".into(), call_count, credits_used }
}

/// The accounts of a report, with their events and atoms.
fn users(report: &OperationsReport) -> Vec<(AccountId, u64, i64)> {
    let user = |total: &AccountTotal| (total.account.clone(), total.usage_events, total.used.atoms());
    report.top_accounts.iter().map(user).collect()
}

/// A customer who was created on the given day.
async fn customer_of(store: &dyn Store, day: u32, granted: i64) -> Customer {
    let entries = vec![entry(LedgerKind::SignupBonus, granted)];
    let new = NewAccount { entries, created_at: at(day), ..new_account() };
    let customer = Customer { id: new.id.clone(), key: new.key };
    create(store, new).await;
    customer
}

/// Nothing happened, on no day.
pub async fn an_empty_store_has_an_empty_operations_report(store: Arc<dyn OperatorStore>) {
    let backwards = DayRange { first: at(1).day(), last: at(0).day() };
    for days in [ALWAYS, TODAY, backwards] {
        assert_eq!(operations(&*store, days).await, OperationsReport::default(), "{days:?}");
    }
}

/// Each day has its new accounts, grants and usage; days without any are left out.
pub async fn operations_are_added_up_by_day(store: Arc<dyn OperatorStore>) {
    let first = customer_of(&*store, 0, 50 * BASE).await;
    let second = customer_of(&*store, 0, 70 * BASE).await;
    let third = customer_of(&*store, 3, 20 * BASE).await;
    commit(&*store, vec![charge(first.key, BASE), charge(second.key, 2 * BASE)], at(0)).await;
    accepted(&*store, charge(first.key, 4 * BASE), at(1)).await;
    post(&*store, &second.id, adjustment(-5 * BASE), at(1)).await;
    post(&*store, &second.id, adjustment(2 * BASE), at(1)).await;
    accepted(&*store, charge(third.key, 0), at(3)).await;
    store.revoke_account(&first.id, at(4)).await.unwrap();
    let report = operations(&*store, ALWAYS).await;
    let granted = |amount| atoms(amount * BASE);
    let expected = [
        DaySales { new_accounts: 2, granted: granted(120), usage_events: 2, used: granted(3), ..quiet(at(0).day()) },
        DaySales { granted: granted(-3), usage_events: 1, used: granted(4), ..quiet(at(1).day()) },
        DaySales { new_accounts: 1, granted: granted(20), usage_events: 1, ..quiet(at(3).day()) },
    ];
    assert_eq!(report.by_day, expected);
    assert_eq!((report.accounts, report.sales.len()), (3, 0), "a revoked account is an account");
    assert_eq!(report.top_routes, [route("/mpp/ethPrice", 4, 7 * BASE)]);
    assert_eq!(users(&report), [(first.id, 2, 5 * BASE), (second.id, 1, 2 * BASE), (third.id, 1, 0)]);
}

/// A report has only what happened from the first millisecond of its first day to the last of its last; the number of
/// accounts has all.
pub async fn operations_report_covers_only_its_days(store: Arc<dyn OperatorStore>) {
    let first = NOON.day().start();
    let moment = Duration::from_millis(1);
    let before = first.saturating_sub(moment);
    let last = first.saturating_add(DAY).saturating_sub(moment);
    for (at, amount) in [(before, 1), (first, 10), (last, 100), (first.saturating_add(DAY), 1_000)] {
        let new = NewAccount { created_at: at, ..new_account() };
        let (id, key) = (new.id.clone(), new.key);
        create(&*store, new).await;
        post(&*store, &id, adjustment(10 * amount), at).await;
        accepted(&*store, charge_on(key, amount, line(&format!("/{amount}"))), at).await;
    }
    let report = operations(&*store, TODAY).await;
    let (granted, used) = (atoms(1_100), atoms(110));
    assert_eq!(report.by_day, [DaySales { new_accounts: 2, granted, usage_events: 2, used, ..quiet(NOON.day()) }]);
    assert_eq!(report.accounts, 4);
    assert_eq!(report.top_routes, [route("/100", 1, 100), route("/10", 1, 10)]);
    assert_eq!(report.top_accounts.iter().map(|total| total.used.atoms()).collect::<Vec<_>>(), [100, 10]);
    let all = operations(&*store, ALWAYS).await;
    assert_eq!((all.by_day.len(), all.top_accounts.len()), (3, 4));
}

/// Refunds reduce the usage of the day of their charge, and the number of events does not change.
pub async fn refunds_reduce_the_operations_report(store: Arc<dyn OperatorStore>) {
    let customer = customer(&*store, 100 * BASE).await;
    let receipt = accepted(&*store, charge_on(customer.key, 5 * BASE, line("/a")), at(0)).await;
    accepted(&*store, charge_on(customer.key, 3 * BASE, line("/b")), at(1)).await;
    commit_refund(&*store, receipt.into_refund().unwrap(), at(1)).await.expect("the amount is in range");
    let report = operations(&*store, ALWAYS).await;
    let days: Vec<_> = report.by_day.iter().map(|day| (day.usage_events, day.used)).collect();
    assert_eq!(days, [(1, Credits::ZERO), (1, atoms(3 * BASE))]);
    assert_eq!(report.top_routes, [route("/b", 1, 3 * BASE), route("/a", 1, 0)]);
    assert_eq!(users(&report), [(customer.id, 2, 3 * BASE)]);
}

/// The accounts that used most are listed, most credits first, then most events, then in the order of creation.
pub async fn top_accounts_are_ordered_and_limited(store: Arc<dyn OperatorStore>) {
    let mut customers = Vec::new();
    for number in 0..25_u32 {
        let agent_name = format!("agent-{number}").parse().unwrap();
        let new = NewAccount { agent_name, entries: vec![adjustment(1_000)], ..new_account() };
        customers.push((new.id.clone(), new.key, 1 + i64::from(number % 3)));
        create(&*store, new).await;
    }
    let mut charges: Vec<_> = customers.iter().map(|(_, key, price)| charge(*key, *price)).collect();
    charges.reverse();
    // As much as the first, in more requests.
    let (busiest, key, _) = customers[24].clone();
    charges.extend([charge(key, 1), charge(key, 1)]);
    commit(&*store, charges, NOON).await;
    customers.remove(24);
    let idle = customer(&*store, BASE).await;
    customers.sort_by_key(|(_, _, price)| Reverse(*price));
    let mut expected = vec![(busiest, 3, 3)];
    expected.extend(customers.into_iter().map(|(id, _, price)| (id, 1, price)));
    expected.truncate(OperationsReport::TOP);
    let report = operations(&*store, TODAY).await;
    assert_eq!(users(&report), expected);
    assert_eq!((report.accounts, report.top_accounts[0].agent_name.as_str()), (26, "agent-24"));
    assert!(report.top_accounts.iter().all(|total| total.account != idle.id));
    let sum = report.by_day[0].used;
    assert_eq!(sum, atoms(8 + 8 * 2 + 8 * 3 + 3), "the days have all accounts");
}

/// The routes that earned most are listed, over all accounts and sources: most credits first, then most calls, then by
/// template and method.
pub async fn top_routes_are_ordered_and_limited(store: Arc<dyn OperatorStore>) {
    let (first, second) = (customer(&*store, 10_000).await, customer(&*store, 10_000).await);
    let mut charges = Vec::new();
    for number in 0..25_i64 {
        charges.push(charge_on(first.key, 1 + number / 2, line(&format!("/{number:02}"))));
    }
    let cli = UsageLine { source: ClientSource::Cli, ..line("/shared") };
    let posted = UsageLine { http_method: "POST".into(), ..line("/24") };
    charges.extend([
        charge_on(first.key, 30, line("/shared")),
        charge_on(second.key, 30, line("/shared")),
        charge_on(second.key, 40, cli),
        charge_on(second.key, 13, posted),
        charge_on(second.key, 6, line("/two-calls")),
        charge_on(second.key, 6, line("/two-calls")),
    ]);
    commit(&*store, charges, NOON).await;
    let mut expected = vec![route("/shared", 3, 100), route("/24", 1, 13)];
    expected.push(EndpointUsage { http_method: "POST".into(), ..route("/24", 1, 13) });
    expected.push(route("/two-calls", 2, 12));
    for pair in (0..12).rev() {
        let price = 1 + pair;
        expected.extend([2 * pair, 2 * pair + 1].map(|number| route(&format!("/{number:02}"), 1, price)));
    }
    expected.truncate(OperationsReport::TOP);
    assert_eq!(operations(&*store, TODAY).await.top_routes, expected);
}

/// Recent usage counts like older usage, no matter where a backend keeps it: on every day the report agrees with the
/// daily totals after each commit.
pub async fn operations_report_has_the_newest_usage(store: Arc<dyn OperatorStore>) {
    let (busy, calm) = (customer(&*store, 1_000 * BASE).await, customer(&*store, 1_000 * BASE).await);
    for number in 0..40_u32 {
        let template = format!("/{}", number % 3);
        let price = BASE + i64::from(number);
        accepted(&*store, charge_on(busy.key, price, line(&template)), at(number / 15)).await;
        if number % 9 == 0 {
            accepted(&*store, charge_on(calm.key, 1, line(&template)), at(number / 15)).await;
        }
        let report = operations(&*store, ALWAYS).await;
        let totals = all_daily_totals(&*store).await;
        for day in &report.by_day {
            let of_day = totals.iter().filter(|total| total.day == day.day);
            let used = Credits::checked_sum(of_day.clone().map(|total| total.credits_used)).unwrap();
            assert_eq!((day.usage_events, day.used), (of_day.map(|total| total.calls).sum(), used), "{number}");
        }
        assert_eq!(report.by_day.iter().map(|day| day.usage_events).sum::<u64>(), u64::from(number + 2 + number / 9));
        let routes = report.top_routes.iter().map(|route| route.call_count).sum::<u64>();
        let accounts = report.top_accounts.iter().map(|account| account.usage_events).sum::<u64>();
        assert_eq!((routes, accounts), (u64::from(number + 2 + number / 9), u64::from(number + 2 + number / 9)));
    }
}

/// A sum out of range is an error, never a wrong number.
pub async fn an_operations_report_out_of_range_is_an_error(store: Arc<dyn OperatorStore>) {
    let (first, second) = (customer(&*store, 0).await, customer(&*store, 0).await);
    for customer in [&first, &second] {
        post(&*store, &customer.id, adjustment(i64::MAX), NOON).await;
    }
    assert!(store.operations_report(TODAY).await.is_err());
    post(&*store, &second.id, adjustment(-i64::MAX), NOON).await;
    assert_eq!(operations(&*store, TODAY).await.by_day[0].granted, Credits::MAX);
}

/// A report that is read during writes is consistent: its days, routes and accounts agree.
pub async fn operations_report_is_one_snapshot(store: Arc<dyn OperatorStore>) {
    let mut customers = Vec::new();
    for _ in 0..4 {
        customers.push(customer(&*store, 1_000_000 * BASE).await);
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        readers.spawn(async move {
            let mut reads = 0;
            while !done.load(Ordering::SeqCst) || reads < 3 {
                let report = operations(&*store, ALWAYS).await;
                let days = Credits::checked_sum(report.by_day.iter().map(|day| day.used));
                let routes = Credits::checked_sum(report.top_routes.iter().map(|route| route.credits_used));
                let accounts = Credits::checked_sum(report.top_accounts.iter().map(|account| account.used));
                assert_eq!((days, days), (routes, accounts));
                let events = report.by_day.iter().map(|day| day.usage_events).sum::<u64>();
                assert_eq!(report.top_routes.iter().map(|route| route.call_count).sum::<u64>(), events);
                assert_eq!(report.top_accounts.iter().map(|account| account.usage_events).sum::<u64>(), events);
                assert_eq!(report.by_day.iter().map(|day| day.new_accounts).sum::<u64>(), report.accounts);
                reads += 1;
            }
        });
    }
    racing(&store, customers.into_iter().enumerate(), |store, (task, customer)| async move {
        for number in 0..40 {
            let template = format!("/{}", (task + number) % 4);
            let price = BASE + i64::try_from(number).unwrap();
            let receipt = accepted(&*store, charge_on(customer.key, price, line(&template)), NOON).await;
            if number % 3 == 0 {
                let refund = receipt.into_refund().expect("there is a charge to refund");
                commit_refund(&*store, refund, NOON).await.expect("the amount is in range");
            }
            if number % 10 == 0 {
                create(&*store, new_account()).await;
            }
        }
    })
    .await;
    done.store(true, Ordering::SeqCst);
    readers.join_all().await;
    assert_eq!(operations(&*store, TODAY).await.by_day[0].usage_events, 160);
}
