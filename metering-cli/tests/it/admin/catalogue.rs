//! Catalogue files before they are served: checked, compared, and rehearsed on past usage.

use std::time::Duration;

use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::store::Posted;
use metering_core::{Credits, Decision, FullStore, Timestamp};
use metering_postgres::PostgresStore;
use metering_sql::transfer::Export;
use metering_tests::postgres::{Cluster, is_skipped};
use serde_json::{Value, json};

use super::{charge, failed, now};
use crate::program::{Program, RunOutput};
use crate::store::{block_on, records};

const DAY: Duration = Duration::from_secs(86_400);

/// Writes a catalogue of these routes: path, other fields.
fn write(program: &Program, name: &str, routes: &[(&str, Value)]) {
    let endpoints: Vec<Value> = routes
        .iter()
        .map(|(path, fields)| {
            let mut route = json!({"path": path, "method": "GET", "metered": true});
            route.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            route
        })
        .collect();
    program.write(name, json!({"market": "M", "version": 1, "endpoints": endpoints}).to_string());
}

/// A price of 0.01 up to an hour back, and `factor` times as much beyond.
fn lookback(factor: u32) -> Value {
    json!({"credit_weight": 72, "params": [{"name": "back", "in": "query", "type": "integer", "required": true}],
        "billing_modifier": {"type": "lookback_multiplier", "param": "back", "overflow_multiplier": factor,
            "tiers": [{"max_seconds": 3_600, "multiplier": 1}]}})
}

fn program() -> Program {
    let program = Program::without_store();
    let price = |text: &str| json!({ "price": text });
    write(&program, "routes.json", &[("/a", price("0.01")), ("/back", lookback(4)), ("/gone", price("0.01"))]);
    let added = json!({"metered": false});
    write(&program, "new.json", &[("/a", price("0.03")), ("/back", lookback(8)), ("/added", added)]);
    program
}

#[test]
fn check_reports_everything_that_is_wrong() {
    let program = program();
    assert_eq!(program.run("catalogue check new.json").success(), "new.json is valid: 3 routes.\n");
    let valid = [("/valid", "true"), ("/routes", "3"), ("/problems", "[]")];
    program.documents(&[("catalogue check new.json", &valid)]);

    let wrong = [("/a", json!({"price": "-1", "colour": "x"})), ("/b", json!({"metred": 1, "method": "get"}))];
    write(&program, "wrong.json", &wrong);
    let refused = program.run("catalogue check wrong.json");
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
    assert_eq!(failed(refused, 1), "wrong.json has 4 problems");
    let document: Value = program.run("catalogue check wrong.json --json").expect(1).json();
    let problem = json!({"place": "endpoints[1]", "route": "get /b",
        "problem": "unknown key metred; did you mean metered?"});
    assert_eq!((&document["valid"], &document["problems"][2]), (&json!(false), &problem));

    program.write("broken.json", "{");
    let broken: RunOutput = program.run("catalogue check broken.json");
    assert!(broken.stdout.contains("EOF while parsing an object at line 1"), "{broken:?}");
    assert_eq!(failed(broken, 1), "broken.json has 1 problem");
    program.refuses(&[("catalogue check none.json", 1, "cannot read none.json")]);
    assert!(!program.database().exists(), "nothing of this needs a store");
}

#[test]
fn diff_lists_changed_routes_in_order() {
    let program = program();
    let rows = program.rows("catalogue diff new.json --with routes.json");
    let back = |beyond: &str| format!("0.01 up to 3600 s of look-back, {beyond} beyond");
    let expected = [
        "price GET /a 0.01 0.03".to_owned(),
        "added GET /added - not metered".to_owned(),
        format!("price GET /back {} {}", back("0.04"), back("0.08")),
        "removed GET /gone 0.01 -".to_owned(),
    ];
    assert_eq!(rows, expected);
    let document: Value = program.json("catalogue diff new.json --with routes.json");
    let removed = json!({"http_method": "GET", "route_template": "/gone", "change": "removed",
        "price_before": "0.01", "price_after": null});
    assert_eq!((&document["with"], &document["changes"][3]), (&json!("routes.json"), &removed));
    program.write("metering.toml", "catalogue = 'routes.json'\nlisten = '127.0.0.1:1'\n");
    let configured: Value = program.json("--config metering.toml catalogue diff new.json");
    assert_eq!(configured, document);
    program.tabulates(&[(
        "catalogue diff new.json --with routes.json",
        &["CHANGE METHOD ROUTE PRICE BEFORE PRICE AFTER"],
    )]);
    let same = program.run("catalogue diff new.json --with new.json").success();
    assert_eq!(same, "No differences in routes and prices from new.json.\n");
    program.refuses(&[("catalogue diff new.json", 2, "--with FILE")]);
}

/// A route with a preset, whose models are in a file of their own.
fn selling(program: &Program) {
    let route = json!({"path": "/v1/chat/completions", "method": "POST", "metered": true,
        "price": {"preset": "openai-chat"}});
    let catalogue = json!({"market": "M", "version": 1, "models": {"file": "models.json"}, "endpoints": [route]});
    program.write("selling.json", catalogue.to_string());
}

#[test]
fn explained_catalogue_is_the_same_catalogue_without_presets() {
    let program = Program::without_store();
    selling(&program);
    let missing: RunOutput = program.run("catalogue check selling.json");
    assert!(missing.stdout.contains("models.file: models.json: "), "{missing:?}");
    let prices = json!({"input_tokens": "1", "output_tokens": "10"});
    program.write("models.json", json!({"models": {"small": {"max": "1", "per_million": prices}}}).to_string());
    let explained = program.run("catalogue check selling.json --explain").success();
    let document: Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(document["endpoints"][0]["price"]["report"]["json"]["output_tokens"], "/usage/completion_tokens");
    assert!(!explained.contains("preset") && document.get("models").is_none(), "{explained}");
    program.write("explained.json", explained.clone());
    assert_eq!(program.run("catalogue check explained.json").success(), "explained.json is valid: 1 route.\n");
    let same = program.run("catalogue diff explained.json --with selling.json").success();
    assert!(same.starts_with("No differences"), "{same}");
}

#[test]
fn prices_of_models_are_imported_and_each_import_shows_what_changed() {
    let program = Program::without_store();
    selling(&program);
    let map = |output: &str| {
        format!(
            r#"{{"gpt-x": {{"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06,
                "output_cost_per_token": {output}, "input_cost_per_token_above_272k_tokens": 2e-06,
                "max_input_tokens": 1000, "max_output_tokens": 100}},
              "tts-x": {{"litellm_provider": "openai", "mode": "audio_speech", "input_cost_per_character": 1e-05}}}}"#
        )
    };
    program.write("prices.json", map("1e-05"));
    let import = "catalogue models import prices.json --markup 1.2 --usd-per-credit 0.1";
    let dry: Value = program.json(&format!("{import} --dry-run"));
    assert_eq!((&dry["written"], &dry["models"]), (&json!(false), &json!(1)));
    program.refuses(&[("catalogue check selling.json", 1, "selling.json has 1 problem")]);
    let first: Value = program.json(import);
    assert_eq!(first["changes"], dry["changes"]);
    assert_eq!(first["changes"][0]["units"]["output_tokens"], json!({"before": null, "after": "120"}));
    assert_eq!(first["not_charged"], json!([{"model": "gpt-x", "what": "input_cost_per_token_above_272k_tokens"}]));
    assert_eq!(first["left_out"][0]["model"], "tts-x");
    assert_eq!(program.run("catalogue check selling.json").success(), "selling.json is valid: 1 route.\n");
    assert_eq!(program.json::<Value>(import)["changes"], json!([]));

    program.write("prices.json", map("9e-06"));
    let table = program.run("catalogue models import prices.json --markup 1.2 --usd-per-credit 0.1").success();
    assert!(table.contains("cheaper") && table.contains("output_tokens 120 -> 108"), "{table}");
    program.refuses(&[
        (
            "catalogue models import prices.json --markup 0 --usd-per-credit 1",
            2,
            "the markup must be a decimal number above 0",
        ),
        ("catalogue models import none.json --markup 1 --usd-per-credit 1", 1, "cannot read none.json"),
    ]);
}

/// Charges at the prices of `routes.json`: one account that would run out with those of `new.json` (`$spender`), one
/// that would not (`$saver`).
async fn charge_both(program: &Program, store: &dyn FullStore, now: Timestamp) {
    let mut keys = Vec::new();
    for (name, credits) in [("spender", "1"), ("saver", "10")] {
        let account: Value = program.json(&format!("$options account create --agent-name {name}"));
        let text = |field: &str| account[field].as_str().unwrap().to_owned();
        program.call(name, text("org_id"));
        keys.push(text("api_key"));
        let grant = NewLedgerEntry::new(LedgerKind::Adjustment, credits.parse().unwrap(), "Granted");
        let posted = store.post_entry(&text("org_id").parse().unwrap(), grant, now.saturating_sub(DAY * 5)).await;
        assert!(matches!(posted.unwrap(), Posted::Account(_)));
    }
    let [spender, saver] = &keys[..] else { unreachable!() };
    // key, route, price in cents, days ago, times
    for (key, route, cents, ago, times) in [
        (spender, "/a", 1, 2_u32, 40),
        (spender, "/a", 1, 0, 10),
        (spender, "/gone", 1, 0, 1),
        (saver, "/a", 1, 0, 5),
        (saver, "/back", 1, 0, 1),
        (saver, "/back", 4, 0, 1),
    ] {
        let at = now.saturating_sub(DAY * ago);
        let price = Credits::from_atoms("0.01".parse::<Credits>().unwrap().atoms() * cents);
        for call in 0..times {
            let Decision::Accepted(receipt) = charge(store, key, route, price, at).await else { panic!("refused") };
            if (route, ago, call) == ("/a", 0, 9) {
                let refund = receipt.into_refund().unwrap();
                let outcome = store.commit(vec![Posting::Refund(refund)], now).await.unwrap();
                assert!(matches!(outcome[0], Outcome::Refunded(Some(_))), "{outcome:?}");
            }
        }
    }
}

/// Checks what `new.json` would have cost, computed by hand.
fn check_rehearsal(program: &Program, now: Timestamp) {
    let day = now.day().minus_days(2).to_string();
    program.call("day", &day);
    let rehearse = "$options catalogue rehearse new.json --with routes.json";
    let document: Value = program.json(rehearse);
    // 40 and 9 calls of the spender and 5 of the saver cost 0.03 instead of 0.01. One call was refunded.
    let totals = json!({"calls": 58, "credits_before": 0.6, "credits_after": 1.67, "credits_difference": 1.07,
        "estimated_calls": 0, "unknown_calls": 2, "credits_unknown": 0.05, "removed_calls": 1});
    assert_eq!(document["totals"], totals);
    let unchanged = json!({"calls": 58, "credits_before": 0.6, "credits_after": 0.6, "credits_difference": 0,
        "estimated_calls": 0, "unknown_calls": 0, "credits_unknown": 0, "removed_calls": 0});
    let same: Value = program.json("$options catalogue rehearse routes.json --with routes.json");
    assert_eq!((&same["totals"], &same["run_outs"]), (&unchanged, &json!(0)));
    program.documents(&[
        (
            rehearse,
            &[
                ("/routes", "3"),
                ("/accounts", "2"),
                ("/run_outs", "1"),
                ("/by_route/0/route_template", "\"/a\""),
                ("/by_route/0/calls", "55"),
                ("/by_route/0/credits_before", "0.54"),
                ("/by_route/0/credits_after", "1.62"),
                ("/by_route/1/route_template", "\"/gone\""),
                ("/by_route/2/route_template", "\"/back\""),
                ("/by_route/3", ""),
                ("/by_account/0/org_id", "\"$spender\""),
                ("/by_account/0/credits_after", "1.47"),
                ("/by_account/1/org_id", "\"$saver\""),
                ("/by_account/2", ""),
            ],
        ),
        // Without the catalogue in force, refunded requests cannot be distinguished.
        (
            "$options catalogue rehearse new.json",
            &[("/totals/credits_after", "1.7"), ("/totals/estimated_calls", "55")],
        ),
        // On the first of these two days, 0.6 credits are left.
        (
            &format!("{rehearse} --top 1 --days 2"),
            &[
                ("/by_route/1", ""),
                ("/routes", "3"),
                ("/totals/calls", "18"),
                ("/totals/credits_after", "0.47"),
                ("/run_outs", "0"),
            ],
        ),
    ]);
    let spender = program.text("$spender");
    let run_out =
        json!([{"org_id": spender, "agent_name": "spender", "day": day, "day_before": null, "balance_after": -0.47}]);
    assert_eq!(document["run_out"], run_out);
    let rows = [
        "Credits before 0.6",
        "Credits after 1.67",
        "Unknown calls 2, counted as the 0.05 charged",
        "/a GET 55 0.54 1.62 1.08",
        "/back GET 2 0.05 0.05 0 unknown",
        "/gone GET 1 0.01 0 -0.01 removed",
        "$spender spender $day - -0.47",
    ];
    program.tabulates(&[(rehearse, &rows)]);
    let (by_account, saver) = (program.rows(&format!("{rehearse} --by account")), program.text("$saver"));
    assert!(by_account.iter().any(|row| row.starts_with(&saver) && row.ends_with("2 unknown")), "{by_account:?}");
}

/// Rehearses on a store, which is not changed.
async fn rehearse<S: FullStore + Export>(program: &Program, store: &S) {
    let now = now();
    charge_both(program, store, now).await;
    let before = records(store).await;
    tokio::task::block_in_place(|| check_rehearsal(program, now));
    assert_eq!(records(store).await, before, "nothing is changed");
}

#[test]
fn rehearsal_reprices_past_usage_of_a_file_that_is_in_use() {
    let program = program();
    // Creates the file.
    program.create("idle", "1");
    program.call("options", "--data=metering-data");
    block_on(rehearse(&program, &*program.store()));
    let elsewhere = program.run("--server http://127.0.0.1:1 catalogue rehearse new.json").expect(2);
    assert!(!elsewhere.stderr.is_empty());
}

#[test]
fn rehearsal_reads_postgres_as_it_reads_a_file() {
    metering_tests::skip_if!(is_skipped());
    let program = program();
    let url = Cluster::shared().fresh_schema();
    program.call("options", format!("--database={url}"));
    block_on(async {
        let store = PostgresStore::connect(&format!("{url}&pool_size=4").parse().unwrap()).await.unwrap();
        rehearse(&program, &store).await;
    });
}
