//! Usage reports whose parts add up.

use std::time::Duration;

use metering_core::{Credits, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::fixture::{Fixture, Issued, Printed, block_on, charge, now};

#[derive(Debug, Deserialize)]
struct Report {
    credit_balance: Printed,
    total_credits_used: Printed,
    window_days: u32,
    totals: Totals,
    window: Totals,
    by_day: Vec<ByDay>,
    by_endpoint: Vec<ByEndpoint>,
}

#[derive(Debug, Deserialize)]
struct Totals {
    usage_events: u64,
    credits_used: Printed,
    credits_added: Printed,
}

#[derive(Debug, Deserialize)]
struct ByDay {
    day: String,
    usage_events: u64,
    credits_used: Printed,
}

#[derive(Debug, Deserialize)]
struct ByEndpoint {
    route_template: String,
    http_method: String,
    call_count: u64,
    credits_used: Printed,
}

fn base_calls(count: i64) -> Credits {
    Credits::from_atoms(count * Credits::BASE_CALL.atoms())
}

/// An account with 1 call 40 days ago, 2 calls 2 days ago and 4 now.
fn fixture_with_history() -> (Fixture, Issued, Timestamp) {
    let fixture = Fixture::new();
    let account = fixture.create("spender", "5");
    fixture.create("idle", "1.5");
    let now = now();
    let days = |count: u64| Duration::from_secs(count * 86_400);
    let store = fixture.store();
    block_on(async {
        for (calls, ago, route) in [(1, 40, "/old"), (2, 2, "/a"), (3, 0, "/a"), (1, 0, "/b")] {
            for _ in 0..calls {
                let at = now.saturating_sub(days(ago));
                charge(store.as_ref(), &account.api_key, route, Credits::BASE_CALL, at).await;
            }
        }
    });
    (fixture, account, now)
}

#[test]
fn report_lists_days_newest_first_and_adds_up() {
    let (fixture, account, now) = fixture_with_history();
    let report: Report = fixture.json(&["usage", &account.org_id]);
    assert_eq!(report.window_days, 30);
    let five: Credits = "5".parse().unwrap();
    assert_eq!(report.window.usage_events, 6);
    assert_eq!(report.window.credits_used, base_calls(6));
    assert_eq!(report.window.credits_added, five);
    assert_eq!(report.totals.usage_events, 7, "of its lifetime");
    assert_eq!(report.totals.credits_used, base_calls(7));
    assert_eq!(report.totals.credits_added, five);
    assert_eq!(report.credit_balance, five.checked_sub(base_calls(7)).unwrap());
    assert_eq!(report.total_credits_used, base_calls(7));
    // day, calls
    let days = [(now.day(), 4_i64), (now.day().minus_days(2), 2)];
    assert_eq!(report.by_day.len(), days.len());
    for (found, (day, calls)) in report.by_day.iter().zip(days) {
        assert_eq!((&found.day, found.usage_events), (&day.to_string(), calls.unsigned_abs()));
        assert_eq!(found.credits_used, base_calls(calls));
    }
    // route, calls
    let endpoints = [("/a", 5_i64), ("/b", 1)];
    assert_eq!(report.by_endpoint.len(), endpoints.len());
    for (found, (route, calls)) in report.by_endpoint.iter().zip(endpoints) {
        assert_eq!((found.route_template.as_str(), found.http_method.as_str()), (route, "GET"));
        assert_eq!(found.call_count, calls.unsigned_abs());
        assert_eq!(found.credits_used, base_calls(calls));
    }
}

#[test]
fn the_window_is_today_and_the_days_before_it() {
    let (fixture, account, _) = fixture_with_history();
    for (days, calls) in [("1", 4), ("2", 4), ("3", 6), ("40", 6), ("41", 7), ("36500", 7)] {
        let report: Report = fixture.json(&["usage", &account.org_id, "--days", days]);
        assert_eq!((report.window.usage_events, report.totals.usage_events), (calls, 7), "{days}");
    }
    for days in ["0", "-1", "36501", "week"] {
        fixture.admin(&["usage", "--days", days]).misuse();
    }
}

#[test]
fn without_an_account_each_account_has_totals() {
    let (fixture, account, _) = fixture_with_history();
    let all: Value = fixture.json(&["usage", "--days", "3"]);
    assert_eq!(all["window_days"], 3);
    let accounts = all["accounts"].as_array().unwrap();
    assert_eq!(accounts.len(), 2);
    assert_eq!(accounts[0]["org_id"], account.org_id.as_str());
    assert_eq!(
        (&accounts[0]["totals"]["usage_events"], &accounts[1]["totals"]["usage_events"]),
        (&6.into(), &0.into())
    );
    assert_eq!((&all["totals"]["usage_events"], &all["totals"]["credits_added"]), (&6.into(), &6.5.into()));
    let table = fixture.admin(&["usage", "--days", "3"]).success().stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], [account.org_id.as_str(), "spender", "6", "0.0008333333", "5", "4.9990277778"]);
    assert_eq!(rows[3], ["TOTAL", "6", "0.0008333333", "6.5", "6.4990277778"]);
}

#[test]
fn people_see_days_and_routes() {
    let (fixture, account, now) = fixture_with_history();
    let text = fixture.admin(&["usage", &account.org_id]).success().stdout;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let today = now.day().to_string();
    for row in [
        &["Calls", "6"][..],
        &["Credits", "used", "0.0008333333"],
        &[&today, "4", "0.0005555556"],
        &["/a", "GET", "5", "0.0006944444"],
    ] {
        assert!(rows.iter().any(|cells| cells == row), "{row:?}: {text}");
    }
}
