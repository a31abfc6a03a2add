//! `metering balance` and `metering usage`.

use metering_core::{Clock, SystemClock};

use super::{client, misuses};
use crate::program::Program;
use crate::stand_in::{Reply, StandIn};

const SUMMARY: &str = r#"{"org_id":"org_1","email":null,"credit_balance":1.5,"total_credits_purchased":0,
"total_credits_used":0.6,"window_days":30,"totals":{"usage_events":9999,"credits_used":7,"credits_added":9},
"window":{"usage_events":1210,"credits_used":0.60,"credits_added":2},
"by_day":[{"day":"2026-11-21","usage_events":10,"credits_used":0.1000000001},
{"day":"2026-11-20","usage_events":1200,"credits_used":0.4},{"day":"2026-11-02","usage_events":0,"credits_used":-0.1}],
"by_endpoint":[{"route_template":"/mpp/ethPrice","http_method":"GET","call_count":1000,"credits_used":0.5},
{"route_template":"/mpp/a\u001b]0;x\u0007","http_method":"GET","call_count":210,"credits_used":0.1}]}"#;

const ACTIVITY: &str = r#"{"org_id":"org_1","transactions":[
{"id":"2","amount":-0.0013888889,"type":"usage","description":null,"http_method":"GET","route_template":"/mpp/ethPrice/{b}",
"request_path":"/mpp/ethPrice/1","client_source":"cli","calls":2,"tx_hash":null,"chain_id":null,"plan_id":null,
"created_at":"2026-11-21T08:00:00.000Z"},
{"id":"1","amount":2,"type":"signup_bonus","description":"Free credits\n","http_method":null,"route_template":null,
"request_path":null,"client_source":null,"calls":1,"tx_hash":null,"chain_id":null,"plan_id":null,
"created_at":"2026-11-20T08:00:00.000Z"}]}"#;

const VOLUMES: &str = r#"{"org_id":"org_1","month":"2026-11","resets_at":"2026-12-01T00:00:00.000Z","routes":[
{"route_template":"/v1/quote","http_method":"GET","call_count":1200,"next_price":0.0010000001,"free_calls_left":0},
{"route_template":"/v1/\u001bnews","http_method":"POST","call_count":0,"next_price":0,"free_calls_left":50}]}"#;

fn balance_document(balance: &str, held: &str) -> String {
    format!(
        r#"{{"org_id":"org_1","agent_name":"bot\u0007","email":null,"payer_address":"0xabc","credit_balance":{balance},{held}"total_credits_purchased":5,"total_credits_granted":2.50,"total_credits_used":0.0000694444,"alert_below":0.5000000001,"rate_limits":{{"requests_per_minute":240,"requests_per_day":0}}}}"#
    )
}

fn balance(balance: &str, held: &str) -> (Program, StandIn) {
    client([("/credits/balance", Reply::ok(balance_document(balance, held)))])
}

/// The program at a service with this summary.
fn summary(document: impl Into<String>) -> (Program, StandIn) {
    client([("/credits/usage/summary", Reply::ok(document.into()))])
}

#[test]
fn the_balance_is_shown_digit_by_digit() {
    let (program, service) = balance("7.4999305556", "");
    let lines = [
        "Balance 7.4999305556",
        "Granted 2.50",
        "Used 0.0000694444",
        "Alert below 0.5000000001",
        "Requests 240 per minute, no limit per day",
        "Agent name bot\u{fffd}",
        "Email -",
        "Payer 0xabc",
    ];
    program.tabulates(&[("balance", &lines)]);
    assert_eq!(service.last().key(), Some(program.text("$key").as_str()));
}

#[test]
fn the_balance_lasts_as_long_as_the_usage_of_the_week_says() {
    let today = SystemClock.now().day();
    let day = |age: u32| format!(r#"{{"day":"{}","credits_used":1.00}}"#, today.minus_days(age));
    // The same at midnight, if that comes now.
    let days: Vec<_> = (0..=8).map(day).collect();
    let (program, service) = balance("12.5", "");
    service.on("/credits/usage/summary", Reply::ok(format!(r#"{{"by_day":[{}]}}"#, days.join(","))));
    program.tabulates(&[("balance", &["Balance 12.5", "Lasts About 12 days at this pace."])]);
    assert_eq!(service.last().target, "/credits/usage/summary?days=30");
    assert!(!program.run("balance --json").success().contains("Lasts"));
    let (program, _without_usage) = balance("12.5", "");
    assert!(!program.run("balance").success().contains("Lasts"));
}

#[test]
fn empty_account_is_not_a_failure_and_gets_advice() {
    for (amount, has_advice) in [("0", true), ("-0.0000694444", true), ("0.0000000001", false)] {
        let (program, _service) = balance(amount, "");
        for line in ["balance", "balance --json"] {
            let ran = program.run(line).expect(0);
            assert_eq!(ran.stderr.contains("`metering topup`"), has_advice, "{amount}: {ran:?}");
            assert!(line == "balance" || ran.stdout == format!("{}\n", balance_document(amount, "")), "{ran:?}");
        }
    }
}

#[test]
fn held_credits_are_shown_when_there_are_any() {
    for held in ["0.25", "0.0000000001", "0"] {
        let field = format!("\"credits_held\":{held},");
        let (program, _service) = balance("7", &field);
        let shown = program.run("balance").success();
        let line = format!("Held         {held} for requests whose cost is not known yet");
        let found = shown.lines().find(|line| line.starts_with("Held"));
        assert_eq!(found, (held != "0").then_some(line.as_str()), "{shown}");
        assert_eq!(program.run("balance --json").success(), format!("{}\n", balance_document("7", &field)));
    }
}

#[test]
fn usage_tables_work_in_a_pipe_and_fit_the_terminal() {
    let (program, service) = summary(SUMMARY);
    let text = program.run("usage --days 30").success();
    assert!(text.contains("\nDAY         CALLS  CREDITS USED\n"), "{text}");
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    // 80 columns, minus the table and the gap.
    assert_eq!(line("2026-11-20"), format!("2026-11-20   1200           0.4  {}", "#".repeat(47)));
    assert_eq!(line("2026-11-21"), format!("2026-11-21     10  0.1000000001  {}", "#".repeat(11)));
    assert_eq!(line("2026-11-02"), "2026-11-02      0          -0.1");
    assert!(text.contains("/mpp/a\u{fffd}]0;x\u{fffd}") && !text.contains(['\u{1b}', '█']), "{text}");
    for (columns, longest) in [("0", 47), ("1", 0), ("36", 0), ("37", 4), ("50", 17), ("65000", 60), ("x", 47)] {
        let text = program.run_with(&[("COLUMNS", columns)], "usage").success();
        let found = text.lines().map(|line| line.matches('#').count()).max().unwrap();
        assert_eq!(found, longest, "{columns}: {text}");
    }
    let text = program.run("usage --top 1").success();
    assert!(text.contains("/mpp/ethPrice") && !text.contains("/mpp/a"), "{text}");
    assert!(text.ends_with("and 1 more; use --top to show them\n"), "{text}");
    assert!(service.targets().iter().all(|target| target == "/credits/usage/summary?days=30"));
}

#[test]
fn several_keys_are_listed_and_one_is_not() {
    let key = |id: &str| format!(r#"{{"key_id":"{id}","key_name":"a\u001b b","call_count":7,"credits_used":0.50}}"#);
    for (keys, is_listed) in [(key("key_1"), false), (format!("{},{}", key("key_1"), key("key_2")), true)] {
        let (program, _service) = summary(format!("{},\"by_key\":[{keys}]}}", SUMMARY.strip_suffix('}').unwrap()));
        let text = program.run("usage").success();
        let table = "\nKEY    NAME  CALLS  CREDITS\nkey_1  a\u{fffd} b      7     0.50\n";
        assert_eq!(text.contains(table), is_listed, "{text}");
    }
}

#[test]
fn activity_is_listed_entry_by_entry() {
    let (program, service) = summary(SUMMARY);
    service.on("/credits/usage", Reply::ok(ACTIVITY));
    let rows = [
        "TIME TYPE ROUTE SOURCE CALLS AMOUNT",
        "2026-11-21T08:00:00.000Z usage GET /mpp/ethPrice/1 cli 2 -0.0013888889",
        "2026-11-20T08:00:00.000Z signup_bonus Free credits\u{fffd} +2",
    ];
    program.tabulates(&[("usage --activity", &rows)]);
    // Programs get the service's own bytes.
    assert_eq!(program.run("usage --json").success(), format!("{SUMMARY}\n"));
    assert_eq!(program.run("usage --activity --limit 7 --json").success(), format!("{ACTIVITY}\n"));
    assert_eq!(service.targets()[1..], ["/credits/usage/summary?days=30", "/credits/usage?limit=7"]);
}

#[test]
fn settled_holds_are_named_in_plain_words() {
    let entry = |kind: &str, amount: &str| {
        format!(
            r#"{{"id":"1","amount":{amount},"type":"{kind}","description":null,"http_method":"POST","route_template":"/v1/chat","request_path":"/v1/chat","client_source":"cli","calls":1,"plan_id":null,"created_at":"2026-11-21T08:00:00.000Z"}}"#
        )
    };
    let entries = [entry("hold_expired", "-0.10"), entry("hold_released", "0"), entry("later_kind", "1")].join(",");
    let (program, _service) = client([("/credits/usage", Reply::ok(format!(r#"{{"transactions":[{entries}]}}"#)))]);
    let text = program.run("usage --activity").success();
    let rows: Vec<_> = text.lines().skip(1).map(|line| line.split_once("Z  ").unwrap().1).collect();
    assert!(rows[0].starts_with("charged on expiry  POST /v1/chat  cli") && rows[0].ends_with("-0.10"), "{text}");
    assert!(rows[1].starts_with("released           POST /v1/chat  cli"), "{text}");
    assert!(rows[2].starts_with("later_kind "), "{text}");
}

#[test]
fn an_account_without_usage_has_no_tables() {
    let (program, service) = summary(
        r#"{"credit_balance":2,"window_days":7,"totals":{"usage_events":0,"credits_used":0,"credits_added":2},"by_day":[],"by_endpoint":[]}"#,
    );
    assert_eq!(program.run("usage").success(), "Balance  2\nDays     7\nCalls    0\nUsed     0\nAdded    2\n");
    let lines = [
        "usage --days 0",
        "usage --days 91",
        "usage --limit 5",
        "usage --days x",
        "usage --activity --limit 0",
        "usage --activity --limit 1001",
    ];
    misuses(&program, &service, &lines);
}

#[test]
fn tiers_show_the_requests_of_the_month_and_the_next_price() {
    let (program, service) = client([("/credits/usage/volumes", Reply::ok(VOLUMES))]);
    assert_eq!(
        program.run("usage --tiers").success(),
        "Month      2026-11\nResets at  2026-12-01T00:00:00.000Z\n\n\
         ROUTE      METHOD  CALLS  FREE CALLS LEFT    NEXT PRICE\n\
         /v1/quote  GET      1200                0  0.0010000001\n\
         /v1/\u{fffd}news  POST        0               50             0\n"
    );
    program.prints(&[("usage --tiers --json", &[r#""next_price":0.0010000001"#])]);
    service.only("/credits/usage/volumes", Reply::ok(r#"{"month":"2026-11","resets_at":"x","routes":[]}"#));
    program.prints(&[("usage --tiers", &["No route of this service has volume tiers.\n"])]);
}

#[test]
fn each_event_and_alert_has_its_request() {
    let list = r#"{"org_id":"org_0123456789abcdefghij","data":[{"id":"evt_1","type":"balance.low","timestamp":"2026-11-21T08:00:00.000Z","data":{"balance":1000000.0000000001,"threshold":2000000}}],"next":null}"#;
    let alert = |below: &str| Reply::ok(format!(r#"{{"org_id":"org_0123456789abcdefghij","below":{below}}}"#));
    let (program, service) = client([
        ("/events", Reply::ok(list)),
        ("/credits/alert", alert("0.0000000006")),
        ("/credits/alert", alert("null")),
    ]);
    let low = "2026-11-21T08:00:00.000Z balance.low Balance fell below 2000000 credits: 1000000.0000000001 left";
    let rows = ["TIME TYPE EVENT", low];
    program.tabulates(&[("events --limit 5", &rows)]);
    let set = "Webhooks get balance.low when the balance falls below 0.0000000006 credits.\n";
    super::sends(
        &program,
        &service,
        &[
            ("events --limit 5", "GET /events?limit=5", ""),
            ("events --after 7 --json", "GET /events?limit=100&after=7", list),
            ("alert set 0.5", r#"PUT /credits/alert {"below":0.5}"#, set),
            ("alert off", r#"PUT /credits/alert {"below":null}"#, "No alert"),
            ("alert show --json", "GET /credits/alert", r#""below":null"#),
        ],
    );
    misuses(&program, &service, &["alert set 0", "alert set -1", "alert set much"]);
}

#[test]
fn automatic_top_ups_are_shown_and_changed() {
    let on = r#"{"org_id":"org_1","enabled":true,"card":{"brand":"visa","last4":"4242"},"rule":{"plan_id":"starter","credits":100,"amount":"10","currency":"EUR","threshold":5,"monthly_limit":"50","charged_this_month":"20"},"stopped":null}"#;
    let stopped = on.replace("true", "false").replace("null", r#""declined""#);
    let off = r#"{"org_id":"org_1","enabled":false,"card":null,"rule":null,"stopped":null}"#;
    let (program, service) = client([
        ("/credits/auto-top-up", Reply::ok(on)),
        ("/credits/auto-top-up", Reply::ok(stopped)),
        ("/credits/card", Reply::ok(off)),
    ]);
    let rule = "Below 5 credits, plan starter is bought for 10 EUR: at most 50 a month (UTC), of which 20 were charged.\nSaved card: visa ending in 4242.\n";
    super::sends(
        &program,
        &service,
        &[
            (
                "auto-topup on --plan starter --below 5 --monthly-limit 50",
                r#"PUT /credits/auto-top-up {"plan_id":"starter","threshold":5,"monthly_limit":"50"}"#,
                rule,
            ),
            (
                "auto-topup show",
                "GET /credits/auto-top-up",
                "Stopped: The card was declined. Turn them on again to go on.\n",
            ),
            ("auto-topup remove-card", "DELETE /credits/card", "Automatic top-ups are off.\nNo saved card."),
        ],
    );
    misuses(
        &program,
        &service,
        &["auto-topup on --plan starter --below 0 --monthly-limit 50", "auto-topup on --below 5"],
    );
}
