//! Catalogue files before they are served: checked, compared, and rehearsed on past usage.

use std::time::Duration;

use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::Posted;
use metering_core::transfer::{Export, Section};
use metering_core::{Credits, Decision, FullStore, Timestamp};
use metering_postgres::PostgresStore;
use metering_tests::postgres::{Cluster, is_skipped};
use serde_json::{Value, json};

use crate::fixture::{Fixture, block_on, charge, now};

const DAY: Duration = Duration::from_secs(86_400);

/// Writes a catalogue of these routes: path, other fields.
fn write(fixture: &Fixture, name: &str, routes: &[(&str, Value)]) {
    let endpoints: Vec<Value> = routes
        .iter()
        .map(|(path, fields)| {
            let mut route = json!({"path": path, "method": "GET", "metered": true});
            route.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            route
        })
        .collect();
    let text = json!({"market": "M", "version": 1, "endpoints": endpoints}).to_string();
    std::fs::write(fixture.path(name), text).unwrap();
}

/// A price of 0.01 up to an hour back, and `factor` times as much beyond.
fn lookback(factor: u32) -> Value {
    json!({"credit_weight": 72, "params": [{"name": "back", "in": "query", "type": "integer", "required": true}],
        "billing_modifier": {"type": "lookback_multiplier", "param": "back", "overflow_multiplier": factor,
            "tiers": [{"max_seconds": 3_600, "multiplier": 1}]}})
}

fn write_both(fixture: &Fixture) {
    write(
        fixture,
        "routes.json",
        &[("/a", json!({"price": "0.01"})), ("/back", lookback(4)), ("/gone", json!({"price": "0.01"}))],
    );
    write(
        fixture,
        "new.json",
        &[("/a", json!({"price": "0.03"})), ("/back", lookback(8)), ("/added", json!({"metered": false}))],
    );
}

#[test]
fn check_reports_everything_that_is_wrong() {
    let fixture = Fixture::new();
    write_both(&fixture);
    let checked = fixture.admin(&["catalogue", "check", "new.json"]).success();
    assert_eq!(checked.stdout, "new.json is valid: 3 routes.\n");
    let document: Value = fixture.json(&["catalogue", "check", "new.json"]);
    assert_eq!(document, json!({"valid": true, "routes": 3, "problems": []}));

    let wrong = [("/a", json!({"price": "-1", "colour": "x"})), ("/b", json!({"metred": 1, "method": "get"}))];
    write(&fixture, "wrong.json", &wrong);
    let refused = fixture.admin(&["catalogue", "check", "wrong.json"]);
    let lines: Vec<&str> = refused.stdout.lines().collect();
    let starts = [
        "endpoints[0], route GET /a: unknown key colour; known keys are path, method",
        "endpoints[0], route GET /a: price: must be 0 to",
        "endpoints[1], route get /b: unknown key metred; did you mean metered?",
        "endpoints[1], route get /b: the method must be an upper-case HTTP method",
    ];
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(refused.failure(1), "wrong.json has 4 problems");
    let json_output = fixture.admin(&["catalogue", "check", "wrong.json", "--json"]);
    let document: Value = json_output.json();
    assert_eq!((&document["valid"], &document["problems"][2]["place"]), (&json!(false), &json!("endpoints[1]")));
    assert_eq!(document["problems"][2]["route"], "get /b");
    assert_eq!(document["problems"][2]["problem"], "unknown key metred; did you mean metered?");
    assert_eq!(json_output.code, 1);

    std::fs::write(fixture.path("broken.json"), "{").unwrap();
    let broken = fixture.admin(&["catalogue", "check", "broken.json"]);
    assert!(broken.stdout.contains("EOF while parsing an object at line 1"), "{broken:?}");
    assert_eq!(broken.failure(1), "broken.json has 1 problem");
    assert!(fixture.admin(&["catalogue", "check", "none.json"]).failure(1).contains("cannot read none.json"));
    assert!(!fixture.database().exists(), "nothing of this needs a store");
}

#[test]
fn diff_lists_changed_routes_in_order() {
    let fixture = Fixture::new();
    write_both(&fixture);
    let table = fixture.admin(&["catalogue", "diff", "new.json", "--with", "routes.json"]).success().stdout;
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(
        rows[0].split_whitespace().collect::<Vec<_>>(),
        ["CHANGE", "METHOD", "ROUTE", "PRICE_BEFORE", "PRICE_AFTER"]
    );
    let cells = |row: &str| row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = rows[1..].iter().map(|row| cells(row)).collect();
    let back = |beyond: &str| format!("0.01 up to 3600 s of look-back, {beyond} beyond");
    assert_eq!(
        rows,
        [
            ["price", "GET", "/a", "0.01", "0.03"].map(str::to_owned),
            ["added", "GET", "/added", "-", "not metered"].map(str::to_owned),
            ["price".into(), "GET".into(), "/back".into(), back("0.04"), back("0.08")],
            ["removed", "GET", "/gone", "0.01", "-"].map(str::to_owned),
        ]
    );
    let document: Value = fixture.json(&["catalogue", "diff", "new.json", "--with", "routes.json"]);
    assert_eq!(document["with"], "routes.json");
    assert_eq!(
        document["changes"][3],
        json!({"http_method": "GET", "route_template": "/gone", "change": "removed",
        "price_before": "0.01", "price_after": null})
    );

    let same = fixture.admin(&["catalogue", "diff", "new.json", "--with", "new.json"]).success();
    assert_eq!(same.stdout, "No differences in routes and prices from new.json.\n");
    std::fs::write(fixture.path("metering.toml"), "catalogue = 'routes.json'\nlisten = '127.0.0.1:1'\n").unwrap();
    let configured: Value = fixture.json(&["--config", "metering.toml", "catalogue", "diff", "new.json"]);
    assert_eq!(configured, document);
    let unknown = fixture.admin(&["catalogue", "diff", "new.json"]).misuse();
    assert!(unknown.contains("--with FILE"), "{unknown}");
}

async fn records(store: &dyn Export) -> Vec<String> {
    let mut records = Vec::new();
    for section in Section::ALL {
        let mut after = None;
        loop {
            let page = store.export(section, after.as_ref(), 100).await.unwrap();
            records.extend(page.items.iter().map(|record| format!("{record:?}")));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    records
}

/// Charges at the prices of `routes.json`: one account that would run out with those of `new.json`, one that would not.
/// Returns their ids.
async fn charge_both(fixture: &Fixture, options: &[&str], store: &dyn FullStore, now: Timestamp) -> [String; 2] {
    let create =
        |name: &str| -> Value { fixture.json(&[options, &["account", "create", "--agent-name", name]].concat()) };
    let [spender, saver] = ["spender", "saver"].map(create);
    let text = |account: &Value, field: &str| account[field].as_str().unwrap().to_owned();
    for (account, credits) in [(&spender, "1"), (&saver, "10")] {
        let grant = NewLedgerEntry::new(LedgerKind::Adjustment, credits.parse().unwrap(), "Granted");
        let id = text(account, "org_id").parse().unwrap();
        let posted = store.post_entry(&id, grant, now.saturating_sub(DAY * 5)).await.unwrap();
        assert!(matches!(posted, Posted::Account(_)), "{posted:?}");
    }
    let cent: Credits = "0.01".parse().unwrap();
    let calls = [
        (&spender, "/a", 1, 2_u32, 40),
        (&spender, "/a", 1, 0, 10),
        (&spender, "/gone", 1, 0, 1),
        (&saver, "/a", 1, 0, 5),
        (&saver, "/back", 1, 0, 1),
        (&saver, "/back", 4, 0, 1),
    ];
    for (account, route, cents, ago, times) in calls {
        let at = now.saturating_sub(DAY * ago);
        for call in 0..times {
            let price = Credits::from_atoms(cent.atoms() * cents);
            let Decision::Accepted(receipt) = charge(store, &text(account, "api_key"), route, price, at).await else {
                panic!("refused")
            };
            if (route, ago, call) == ("/a", 0, 9) {
                let refund = receipt.into_refund().unwrap();
                let outcome = store.commit(vec![Posting::Refund(refund)], now).await.unwrap();
                assert!(matches!(outcome[0], Outcome::Refunded(Some(_))), "{outcome:?}");
            }
        }
    }
    [text(&spender, "org_id"), text(&saver, "org_id")]
}

/// Checks what `new.json` would have cost, computed by hand.
fn check_rehearsal(fixture: &Fixture, options: &[&str], [spender, saver]: &[String; 2], now: Timestamp) {
    let rehearse = [options, &["catalogue", "rehearse", "new.json", "--with", "routes.json"]].concat();
    let document: Value = fixture.json(&rehearse);
    // 40 and 9 calls of the spender and 5 of the saver cost 0.03 instead of 0.01. One call was refunded.
    assert_eq!(
        document["totals"],
        json!({"calls": 58, "credits_before": 0.6, "credits_after": 1.67, "credits_difference": 1.07,
            "estimated_calls": 0, "unknown_calls": 2, "credits_unknown": 0.05, "removed_calls": 1})
    );
    assert_eq!((&document["routes"], &document["accounts"], &document["run_outs"]), (&json!(3), &json!(2), &json!(1)));
    let routes: Vec<_> =
        document["by_route"].as_array().unwrap().iter().map(|route| &route["route_template"]).collect();
    assert_eq!(routes, ["/a", "/gone", "/back"]);
    let route = &document["by_route"][0];
    assert_eq!(
        (&route["calls"], &route["credits_before"], &route["credits_after"]),
        (&json!(55), &json!(0.54), &json!(1.62))
    );
    let accounts: Vec<_> =
        document["by_account"].as_array().unwrap().iter().map(|account| &account["org_id"]).collect();
    assert_eq!(accounts, [spender, saver]);
    assert_eq!(document["by_account"][0]["credits_after"], 1.47);
    let day = now.day().minus_days(2).to_string();
    assert_eq!(
        document["run_out"],
        json!([{"org_id": spender, "agent_name": "spender", "day": day, "day_before": null, "balance_after": -0.47}])
    );

    let same: Value =
        fixture.json(&[options, &["catalogue", "rehearse", "routes.json", "--with", "routes.json"]].concat());
    assert_eq!(
        same["totals"],
        json!({"calls": 58, "credits_before": 0.6, "credits_after": 0.6, "credits_difference": 0,
            "estimated_calls": 0, "unknown_calls": 0, "credits_unknown": 0, "removed_calls": 0})
    );
    assert_eq!(same["run_outs"], 0);

    // Without the catalogue in force, refunded requests cannot be distinguished.
    let alone: Value = fixture.json(&[options, &["catalogue", "rehearse", "new.json"]].concat());
    assert_eq!((&alone["totals"]["credits_after"], &alone["totals"]["estimated_calls"]), (&json!(1.7), &json!(55)));

    let few: Value = fixture.json(&[&rehearse[..], &["--top", "1", "--days", "2"]].concat());
    assert_eq!((few["by_route"].as_array().unwrap().len(), &few["routes"]), (1, &json!(3)));
    assert_eq!((&few["totals"]["calls"], &few["totals"]["credits_after"]), (&json!(18), &json!(0.47)));
    // On the first of these two days, 0.6 credits are left.
    assert_eq!(few["run_outs"], 0);

    let table = fixture.admin(&rehearse).success().stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        &["Credits", "before", "0.6"][..],
        &["Credits", "after", "1.67"],
        &["Unknown", "calls", "2,", "counted", "as", "the", "0.05", "charged"],
        &["/a", "GET", "55", "0.54", "1.62", "1.08"],
        &["/back", "GET", "2", "0.05", "0.05", "0", "unknown"],
        &["/gone", "GET", "1", "0.01", "0", "-0.01", "removed"],
        &[spender, "spender", &day, "-", "-0.47"],
    ] {
        assert!(rows.iter().any(|cells| cells == row), "{row:?}: {table}");
    }
    let by_account = fixture.admin(&[&rehearse[..], &["--by", "account"]].concat()).success().stdout;
    assert!(by_account.lines().any(|line| line.starts_with(saver) && line.ends_with("2 unknown")), "{by_account}");
}

#[test]
fn rehearsal_reprices_past_usage_of_a_file_that_is_in_use() {
    let fixture = Fixture::new();
    write_both(&fixture);
    // Creates the file.
    fixture.create("idle", "1");
    let (store, now) = (fixture.store(), now());
    block_on(async {
        let accounts = charge_both(&fixture, &[], store.as_ref(), now).await;
        let before = records(store.as_ref()).await;
        tokio::task::block_in_place(|| check_rehearsal(&fixture, &[], &accounts, now));
        assert_eq!(records(store.as_ref()).await, before, "nothing is changed");
    });
    let elsewhere = fixture.admin(&["--server", "http://127.0.0.1:1", "catalogue", "rehearse", "new.json"]);
    assert!(!elsewhere.stderr.is_empty() && elsewhere.code == 2, "{elsewhere:?}");
}

#[test]
fn rehearsal_reads_postgres_as_it_reads_a_file() {
    if is_skipped() {
        return;
    }
    let fixture = Fixture::new();
    write_both(&fixture);
    let url = Cluster::shared().fresh_schema();
    let options = ["--database", url.as_str()];
    let now = now();
    block_on(async {
        let store = PostgresStore::connect(&format!("{url}&pool_size=4").parse().unwrap()).await.unwrap();
        let accounts = charge_both(&fixture, &options, &store, now).await;
        let before = records(&store).await;
        tokio::task::block_in_place(|| check_rehearsal(&fixture, &options, &accounts, now));
        assert_eq!(records(&store).await, before, "nothing is changed");
    });
}
