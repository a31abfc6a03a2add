//! `metering usage`.

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const SUMMARY: &str = r#"{"org_id":"org_1","email":null,"credit_balance":1.5,"total_credits_purchased":0,
"total_credits_used":0.6,"window_days":30,"totals":{"usage_events":9999,"credits_used":7,"credits_added":9},
"window":{"usage_events":1210,"credits_used":0.60,"credits_added":2},
"by_day":[{"day":"2026-11-21","usage_events":10,"credits_used":0.1000000001},
{"day":"2026-11-20","usage_events":1200,"credits_used":0.4},{"day":"2026-11-02","usage_events":0,"credits_used":-0.1}],
"by_endpoint":[{"route_template":"/mpp/ethPrice","http_method":"GET","call_count":1000,"credits_used":0.5},
{"route_template":"/mpp/a\u001b]0;x\u0007","http_method":"GET","call_count":210,"credits_used":0.1}]}"#;

fn service() -> StandIn {
    let service = StandIn::start();
    service.on("/credits/usage/summary", Reply::ok(SUMMARY));
    service
}

#[test]
fn usage_tables_work_in_a_pipe() {
    let service = service();
    let (home, _) = Home::of(&service);
    let text = home.metering(&["usage", "--days", "30"]).success();
    assert!(text.contains("\nDAY         CALLS  CREDITS USED\n"), "{text}");
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    // 80 columns, minus the table and the gap.
    assert_eq!(line("2026-11-20"), format!("2026-11-20   1200           0.4  {}", "#".repeat(47)));
    assert_eq!(line("2026-11-21"), format!("2026-11-21     10  0.1000000001  {}", "#".repeat(11)));
    assert_eq!(line("2026-11-02"), "2026-11-02      0          -0.1");
    assert!(text.contains("/mpp/a\u{fffd}]0;x\u{fffd}") && !text.contains(['\u{1b}', '█']), "{text}");
    assert_eq!(service.targets(), ["/credits/usage/summary?days=30"]);
}

#[test]
fn bars_fit_the_terminal_width() {
    let service = service();
    let (home, _) = Home::of(&service);
    for (columns, longest) in [("0", 47), ("1", 0), ("36", 0), ("37", 4), ("50", 17), ("65000", 60), ("x", 47)] {
        let output = home.command(&["usage"]).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found = text.lines().map(|line| line.matches('#').count()).max().unwrap();
        assert_eq!(found, longest, "{columns}: {text}");
    }
}

#[test]
fn several_keys_are_listed_and_one_is_not() {
    let key = |id: &str| format!(r#"{{"key_id":"{id}","key_name":"a\u001b b","call_count":7,"credits_used":0.50}}"#);
    for (keys, is_listed) in [(key("key_1"), false), (format!("{},{}", key("key_1"), key("key_2")), true)] {
        let service = StandIn::start();
        let summary = format!("{},\"by_key\":[{keys}]}}", SUMMARY.strip_suffix('}').unwrap());
        service.on("/credits/usage/summary", Reply::ok(summary));
        let (home, _) = Home::of(&service);
        let text = home.metering(&["usage"]).success();
        assert_eq!(
            text.contains("\nKEY    NAME  CALLS  CREDITS\nkey_1  a\u{fffd} b      7     0.50\n"),
            is_listed,
            "{text}"
        );
    }
}

#[test]
fn only_the_top_routes_are_listed() {
    let service = service();
    let (home, _) = Home::of(&service);
    let text = home.metering(&["usage", "--top", "1"]).success();
    assert!(text.contains("/mpp/ethPrice") && !text.contains("/mpp/a"), "{text}");
    assert!(text.ends_with("and 1 more; use --top to show them\n"), "{text}");
}

#[test]
fn programs_get_the_services_own_bytes() {
    let service = service();
    service.on("/credits/usage", Reply::ok(ACTIVITY));
    let (home, _) = Home::of(&service);
    assert_eq!(home.metering(&["usage", "--json"]).success(), format!("{SUMMARY}\n"));
    let activity = home.metering(&["usage", "--activity", "--limit", "7", "--json"]).success();
    assert_eq!(activity, format!("{ACTIVITY}\n"));
    assert_eq!(service.targets(), ["/credits/usage/summary?days=30", "/credits/usage?limit=7"]);
}

const ACTIVITY: &str = r#"{"org_id":"org_1","transactions":[
{"id":"2","amount":-0.0013888889,"type":"usage","description":null,"http_method":"GET","route_template":"/mpp/ethPrice/{b}",
"request_path":"/mpp/ethPrice/1","client_source":"cli","calls":2,"tx_hash":null,"chain_id":null,"plan_id":null,
"created_at":"2026-11-21T08:00:00.000Z"},
{"id":"1","amount":2,"type":"signup_bonus","description":"Free credits\n","http_method":null,"route_template":null,
"request_path":null,"client_source":null,"calls":1,"tx_hash":null,"chain_id":null,"plan_id":null,
"created_at":"2026-11-20T08:00:00.000Z"}]}"#;

#[test]
fn activity_is_listed_entry_by_entry() {
    let service = service();
    service.on("/credits/usage", Reply::ok(ACTIVITY));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["usage", "--activity"]).success();
    let rows: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["TIME", "TYPE", "ROUTE", "SOURCE", "CALLS", "AMOUNT"]);
    let usage = ["2026-11-21T08:00:00.000Z", "usage", "GET", "/mpp/ethPrice/1", "cli", "2", "-0.0013888889"];
    assert_eq!(rows[1], usage);
    assert_eq!(rows[2], ["2026-11-20T08:00:00.000Z", "signup_bonus", "Free", "credits\u{fffd}", "2"]);
}

#[test]
fn settled_holds_are_named_in_plain_words() {
    let entry = |kind: &str, amount: &str| {
        format!(
            r#"{{"id":"1","amount":{amount},"type":"{kind}","description":null,"http_method":"POST","route_template":"/v1/chat","request_path":"/v1/chat","client_source":"cli","calls":1,"plan_id":null,"created_at":"2026-11-21T08:00:00.000Z"}}"#
        )
    };
    let entries = [entry("hold_expired", "-0.10"), entry("hold_released", "0"), entry("later_kind", "1")].join(",");
    let service = StandIn::start();
    service.on("/credits/usage", Reply::ok(format!(r#"{{"transactions":[{entries}]}}"#)));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["usage", "--activity"]).success();
    let rows: Vec<_> = text.lines().skip(1).map(|line| line.split_once("Z  ").unwrap().1).collect();
    assert!(rows[0].starts_with("charged on expiry  POST /v1/chat  cli") && rows[0].ends_with("-0.10"), "{text}");
    assert!(rows[1].starts_with("released           POST /v1/chat  cli"), "{text}");
    assert!(rows[2].starts_with("later_kind "), "{text}");
}

#[test]
fn an_account_without_usage_has_no_tables() {
    let service = StandIn::start();
    let empty = r#"{"credit_balance":2,"window_days":7,"totals":{"usage_events":0,"credits_used":0,"credits_added":2},"by_day":[],"by_endpoint":[]}"#;
    service.on("/credits/usage/summary", Reply::ok(empty));
    let (home, _) = Home::of(&service);
    assert_eq!(home.metering(&["usage"]).success(), "balance  2\ndays     7\ncalls    0\nused     0\nadded    2\n");
}

#[test]
fn windows_are_as_long_as_the_service_keeps() {
    let home = Home::new();
    for args in [["--days", "0"], ["--days", "91"], ["--limit", "5"], ["--days", "x"]] {
        assert_eq!(home.metering(&[&["usage"], &args[..]].concat()).code, 2, "{args:?}");
    }
    for limit in ["0", "1001"] {
        assert_eq!(home.metering(&["usage", "--activity", "--limit", limit]).code, 2, "{limit}");
    }
}

#[test]
fn tiers_show_the_requests_of_the_month_and_the_next_price() {
    const VOLUMES: &str = r#"{"org_id":"org_1","month":"2026-11","resets_at":"2026-12-01T00:00:00.000Z","routes":[
{"route_template":"/v1/quote","http_method":"GET","call_count":1200,"next_price":0.0010000001,"free_calls_left":0},
{"route_template":"/v1/\u001bnews","http_method":"POST","call_count":0,"next_price":0,"free_calls_left":50}]}"#;
    let service = StandIn::start();
    service.on("/credits/usage/volumes", Reply::ok(VOLUMES));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["usage", "--tiers"]).success();
    assert_eq!(
        text,
        "month      2026-11\nresets at  2026-12-01T00:00:00.000Z\n\n\
         ROUTE      METHOD  CALLS  FREE CALLS LEFT    NEXT PRICE\n\
         /v1/quote  GET      1200                0  0.0010000001\n\
         /v1/\u{fffd}news  POST        0               50             0\n"
    );
    let json = home.metering(&["usage", "--tiers", "--json"]).success();
    assert!(json.contains(r#""next_price":0.0010000001"#), "{json}");
    let service = StandIn::start();
    service.on("/credits/usage/volumes", Reply::ok(r#"{"month":"2026-11","resets_at":"x","routes":[]}"#));
    let (home, _) = Home::of(&service);
    let text = home.metering(&["usage", "--tiers"]).success();
    assert!(text.ends_with("No route of this service has volume tiers.\n"), "{text}");
}
