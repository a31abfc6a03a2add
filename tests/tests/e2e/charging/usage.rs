//! Usage as account holders see it: every view adds up.

use metering_core::{Clock, Credits, SystemClock};
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::calendar::away_from_midnight;
use crate::support::wire::{BASE, amount, balance};

/// A printed amount in atoms: the inverse of `amount`, for amounts printed with ten decimals.
fn atoms(printed: &Value) -> i64 {
    let text = printed.to_string();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let negative = whole.starts_with('-');
    let units: i128 = format!("{}{decimals:0<10}", whole.trim_start_matches('-')).parse().unwrap();
    // One credit is 10^10 printed units and 7.2 × 10^9 atoms. An atom is more than one unit, so rounding is
    // unambiguous.
    let nearest = i64::try_from((units * 72 + 50) / 100).unwrap();
    let atoms = if negative { -nearest } else { nearest };
    assert_eq!(Credits::from_atoms(atoms).to_string(), text);
    atoms
}

#[test]
fn every_view_of_the_summary_matches_the_balance() {
    away_from_midnight();
    let (site, account, server) = Site::serving("2");
    let client = server.client_with(&account.api_key);
    for (path, calls) in [(BASE, 7), ("/mpp/ethPrice", 3), ("/mpp/ethPrice/1", 2), ("/mpp/timeSeries/a/b/601/60", 1)] {
        for _ in 0..calls {
            assert!(client.get(path).status < 500);
        }
    }
    let _ = site.admin_json(&["account", "grant", &account.org_id, "--credits", "0.5"]);
    let used = 7 + 3 * 5 + 2 * 10 + 10;
    let summary = client.get("/credits/usage/summary?days=30").expect(200).json();
    let names: Vec<_> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "by_day",
        "by_endpoint",
        "by_key",
        "credit_balance",
        "email",
        "org_id",
        "total_credits_purchased",
        "total_credits_used",
        "totals",
        "window",
        "window_days",
    ];
    assert_eq!(names, expected);
    assert_eq!((&summary["org_id"], &summary["window_days"]), (&json!(account.org_id), &json!(30)));
    assert_eq!(summary["credit_balance"].to_string(), amount(18_000_000_000 - used * 1_000_000));
    assert_eq!(summary["total_credits_used"].to_string(), amount(used * 1_000_000));
    assert_eq!(summary["total_credits_purchased"].to_string(), "0");
    assert_eq!(summary["totals"]["usage_events"], 13);
    assert_eq!(summary["totals"]["credits_used"].to_string(), amount(used * 1_000_000));
    assert_eq!(summary["totals"]["credits_added"].to_string(), "2.5");
    assert_eq!(summary["window"], summary["totals"], "the account is younger than the window");

    let by_day = summary["by_day"].as_array().unwrap();
    assert_eq!(by_day.len(), 1, "{by_day:?}");
    assert_eq!(by_day[0]["day"], SystemClock.now().day().to_string());
    assert_eq!((&by_day[0]["usage_events"], atoms(&by_day[0]["credits_used"])), (&json!(13), used * 1_000_000));

    let endpoints = summary["by_endpoint"].as_array().unwrap();
    let found: Vec<_> = endpoints
        .iter()
        .map(|entry| (entry["route_template"].as_str().unwrap(), entry["call_count"].as_u64().unwrap()))
        .collect();
    assert_eq!(found[0], ("/mpp/ethPrice/{block_number}", 2));
    assert_eq!(found[1], ("/mpp/ethPrice", 3));
    assert_eq!(found.last(), Some(&(BASE, 7)));
    let sum: i64 = endpoints.iter().map(|entry| atoms(&entry["credits_used"])).sum();
    assert_eq!(sum, used * 1_000_000);
    assert!(endpoints.iter().all(|entry| entry["http_method"] == "GET"));
    let by_endpoint = client.get("/credits/usage/by-endpoint").expect(200).json();
    assert_eq!(by_endpoint["by_endpoint"], summary["by_endpoint"]);
    let first_two = client.get("/credits/usage/by-endpoint?limit=2&days=1").expect(200).json();
    assert_eq!(first_two["by_endpoint"].as_array().unwrap(), &endpoints[..2]);

    let balance_document = client.get("/credits/balance").expect(200).json();
    assert_eq!(balance_document["credit_balance"], summary["credit_balance"]);
    assert_eq!(balance_document["total_credits_granted"].to_string(), "2.5");
    assert_eq!(balance_document["rate_limits"], json!({"requests_per_minute": 0, "requests_per_day": 0}));
}

#[test]
fn recent_activity_shows_every_client_source() {
    let (_site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    // header, recorded source
    let sources = [
        (None, "direct"),
        (Some("cli"), "cli"),
        (Some("mcp"), "mcp"),
        (Some("direct"), "direct"),
        (Some("toaster"), "unknown"),
        (Some("CLI"), "unknown"),
        (Some(""), "unknown"),
    ];
    for (source, recorded) in sources {
        let client = match source {
            Some(source) => client.clone().with_header("X-BDS-Client-Source", source),
            None => client.clone(),
        };
        let _ = client.get("/mpp/ethPrice").expect(200);
        let newest = client.get("/credits/usage?limit=1").expect(200).json();
        let entry = &newest["transactions"][0];
        assert_eq!(entry["client_source"], recorded, "{source:?}");
        assert_eq!(entry["type"], "usage");
        assert_eq!(entry["amount"].to_string(), "-0.0006944444");
        assert_eq!((&entry["http_method"], &entry["route_template"]), (&json!("GET"), &json!("/mpp/ethPrice")));
        assert_eq!((&entry["request_path"], &entry["calls"]), (&json!("/mpp/ethPrice"), &json!(1)));
        let at = entry["created_at"].as_str().unwrap();
        assert!(at.len() == 24 && at.ends_with('Z') && at.as_bytes()[19] == b'.', "{at}");
    }
    let all = client.get("/credits/usage").expect(200).json();
    let entries = all["transactions"].as_array().unwrap();
    assert_eq!(entries.len(), sources.len() + 1);
    let first = entries.last().unwrap();
    assert_eq!((&first["type"], first["amount"].to_string()), (&json!("adjustment"), "1".to_owned()));
    let ids: std::collections::BTreeSet<_> = entries.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), entries.len());
    let sum: i64 = entries.iter().map(|entry| atoms(&entry["amount"])).sum();
    assert_eq!(amount(sum), balance(&client));
    assert_eq!(
        client.get("/credits/usage?limit=3").expect(200).json()["transactions"].as_array().unwrap(),
        &entries[..3]
    );
}

#[test]
fn recent_activity_is_searched_and_paged() {
    let (_site, account, server) = Site::serving("1");
    let owner = server.client_with(&account.api_key);
    let made = owner.post("/keys", &json!({"name": "helper"})).expect(201).json();
    let helper = server.client_with(made["key"].as_str().unwrap());
    for client in [&owner, &helper, &helper] {
        let _ = client.get("/mpp/ethPrice").expect(200);
    }
    let _ = helper.get(BASE).expect(200);
    let list = |query: &str| owner.get(&format!("/credits/usage{query}")).expect(200).json();
    let count = |query: &str| list(query)["transactions"].as_array().unwrap().len();
    let (id, today) = (made["data"]["id"].as_str().unwrap(), SystemClock.now().day());
    // query, entries
    let table = [
        (String::new(), 5),
        (format!("?key={id}"), 3),
        ("?route=/mpp/ethPrice".to_owned(), 3),
        ("?route=GET%20/mpp/ethPrice".to_owned(), 3),
        ("?route=POST%20/mpp/ethPrice".to_owned(), 0),
        (format!("?route=/mpp/ethPrice&key={id}"), 2),
        (format!("?to={}", today.minus_days(2)), 0),
        (format!("?from={}", today.minus_days(2)), 5),
    ];
    for (query, entries) in table {
        assert_eq!(count(&query), entries, "{query}");
        assert_eq!(list(&query)["next"], Value::Null, "{query}");
    }
    let all = list("")["transactions"].as_array().unwrap().clone();
    let (mut listed, mut query) = (Vec::new(), "?limit=2".to_owned());
    for _page in 0..3 {
        let document = list(&query);
        listed.extend(document["transactions"].as_array().unwrap().clone());
        query = format!("?limit=2&before={}", document["next"].as_str().unwrap_or("none"));
    }
    assert_eq!((listed, query.as_str()), (all, "?limit=2&before=none"));
    // query, field
    let wrong = [
        ("?key=helper", "key"),
        ("?key=key_00000000000000000000", "key"),
        ("?route=prices", "route"),
        ("?from=yesterday", "from"),
        ("?to=2026-02-30", "to"),
        ("?from=2026-11-02&to=2026-11-01", "from"),
        ("?before=none", "before"),
    ];
    for (query, field) in wrong {
        let response = owner.get(&format!("/credits/usage{query}")).expect(400);
        assert_eq!(response.error(), "validation_failed", "{query}");
        assert!(response.json()["fields"][field].is_string(), "{query}: {}", response.text());
    }
}

#[test]
fn windows_and_limits_out_of_range_are_cut() {
    let (_site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    // path, parameter
    let table = [
        ("/credits/usage/summary", "days"),
        ("/credits/usage/by-endpoint", "days"),
        ("/credits/usage/by-endpoint", "limit"),
        ("/credits/usage", "limit"),
    ];
    for (path, parameter) in table {
        for value in ["1", "7", "90", "0", "-1", "1001", "4294967296", "99999999999999999999"] {
            let _ = client.get(&format!("{path}?{parameter}={value}")).expect(200);
        }
        for value in ["", "abc", "1.5", "+1", "-", "1e2", "%ff", "%", "1&days=2&limit=2"] {
            let response = client.get(&format!("{path}?{parameter}={value}")).expect(400);
            assert_eq!(response.error(), "validation_failed", "{path} {value}");
            assert!(response.json()["fields"][parameter].is_string(), "{path} {value}: {}", response.text());
        }
    }
    // path, days
    for (path, days) in [("", 7), ("?days=0", 1), ("?days=-1", 1), ("?days=91", 90), ("?days=99999999999999999999", 90)]
    {
        assert_eq!(
            client.get(&format!("/credits/usage/summary{path}")).expect(200).json()["window_days"],
            days,
            "{path}"
        );
    }
    let _ = client.get("/credits/usage/summary?utm_source=x&days=3").expect(200);
}

#[test]
fn accounts_see_only_their_own_usage() {
    let site = Site::new();
    let (one, other) = (site.account("1"), site.account("1"));
    let server = site.server().start();
    let _ = server.client_with(&one.api_key).get(BASE).expect(200);
    let client = server.client_with(&other.api_key);
    let summary = client.get("/credits/usage/summary").expect(200).json();
    assert_eq!((&summary["by_endpoint"], &summary["by_day"]), (&json!([]), &json!([])));
    assert_eq!(summary["org_id"], other.org_id);
    let activity = client.get("/credits/usage").expect(200).json();
    assert_eq!(activity["transactions"].as_array().unwrap().len(), 1);
}
