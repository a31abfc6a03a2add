//! Usage reports whose parts add up.

use std::time::Duration;

use metering_core::{Credits, Timestamp};

use super::{charge, now};
use crate::program::Program;
use crate::store::block_on;

/// So many base calls, as they are printed.
fn base_calls(count: i64) -> String {
    Credits::from_atoms(count * Credits::BASE_CALL.atoms()).to_string()
}

/// An account `$org` with 5 credits, and 1 call 40 days ago, 2 calls 2 days ago and 4 now; and one without calls.
fn with_history() -> (Program, Timestamp) {
    let (program, now) = (Program::without_store(), now());
    let account = program.create("spender", "5");
    program.create("idle", "1.5");
    program.call("org", account.org_id);
    let store = program.store();
    block_on(async {
        for (calls, ago, route) in [(1, 40, "/old"), (2, 2, "/a"), (3, 0, "/a"), (1, 0, "/b")] {
            for _ in 0..calls {
                let at = now.saturating_sub(Duration::from_secs(ago * 86_400));
                charge(&*store, &account.api_key, route, Credits::BASE_CALL, at).await;
            }
        }
    });
    (program, now)
}

#[test]
fn report_lists_days_newest_first_and_adds_up() {
    let (program, now) = with_history();
    let balance = "5".parse::<Credits>().unwrap().checked_sub(Credits::from_atoms(7_000_000)).unwrap().to_string();
    // As text, so that no digit is lost.
    let sums =
        |calls: i64| format!("{{\"usage_events\":{calls},\"credits_used\":{},\"credits_added\":5}}", base_calls(calls));
    let day = |ago, calls: i64| {
        let (day, used) = (now.day().minus_days(ago), base_calls(calls));
        format!("{{\"day\":\"{day}\",\"usage_events\":{calls},\"credits_used\":{used},")
    };
    let route = |route: &str, calls: i64| {
        let used = base_calls(calls);
        format!(
            "{{\"route_template\":\"{route}\",\"http_method\":\"GET\",\"call_count\":{calls},\"credits_used\":{used}}}"
        )
    };
    program.prints(&[(
        "usage $org --json",
        &[
            "\"window_days\":30",
            &format!("\"credit_balance\":{balance},"),
            &format!("\"total_credits_used\":{},", base_calls(7)),
            &format!("\"totals\":{}", sums(7)),
            &format!("\"window\":{}", sums(6)),
            &format!("\"by_day\":[{}", day(0, 4)),
            &day(2, 2),
            &format!("\"by_endpoint\":[{},{}]", route("/a", 5), route("/b", 1)),
        ],
    )]);
    program.documents(&[("usage $org", &[("/by_day/2", "")])]);
    let (calls, today) = ("Calls 6", format!("{} 4 0.0005555556", now.day()));
    program.tabulates(&[("usage $org", &[calls, "Credits used 0.0008333333", &today, "/a GET 5 0.0006944444"])]);
}

#[test]
fn the_window_is_today_and_the_days_before_it() {
    let (program, _) = with_history();
    for (days, calls) in [("1", "4"), ("2", "4"), ("3", "6"), ("40", "6"), ("41", "7"), ("36500", "7")] {
        let events = [("/window/usage_events", calls), ("/totals/usage_events", "7")];
        program.documents(&[(&format!("usage $org --days {days}"), &events)]);
    }
    program.refuses(&[
        ("usage --days 0", 2, "--days"),
        ("usage --days -1", 2, "-1"),
        ("usage --days 36501", 2, "--days"),
        ("usage --days week", 2, "--days"),
    ]);
}

#[test]
fn without_an_account_each_account_has_totals() {
    let (program, _) = with_history();
    let totals = [
        ("/window_days", "3"),
        ("/accounts/0/org_id", "\"$org\""),
        ("/accounts/0/totals/usage_events", "6"),
        ("/accounts/1/totals/usage_events", "0"),
        ("/accounts/2", ""),
        ("/totals/usage_events", "6"),
        ("/totals/credits_added", "6.5"),
    ];
    program.documents(&[("usage --days 3", &totals)]);
    let rows = ["$org spender 6 0.0008333333 5 4.9990277778", "TOTAL 6 0.0008333333 6.5 6.4990277778"];
    program.tabulates(&[("usage --days 3", &rows)]);
}
