//! Statements: the ledger and the daily usage, complete, as JSON and as CSV files.

use metering_core::{Clock, SystemClock};
use metering_tests::site::Site;
use serde_json::json;

use crate::support::calendar::away_from_midnight;
use crate::support::wire::BASE;

#[test]
fn daily_usage_adds_up_to_the_summary() {
    away_from_midnight();
    let site = Site::new();
    let account = site.account("2");
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    for (path, calls) in [(BASE, 3), ("/mpp/ethPrice", 2)] {
        for _ in 0..calls {
            let _ = client.get(path).expect(200);
        }
    }
    let _ = client.clone().with_header("X-BDS-Client-Source", "cli").get("/mpp/ethPrice").expect(200);
    let today = SystemClock.now().day().to_string();
    let daily = client.get("/credits/usage/daily").expect(200).json();
    let row = |template: &str, source: &str, calls: u64| {
        let found = daily["usage"].as_array().unwrap().iter().find(|row| {
            (&row["route_template"], &row["client_source"], &row["day"])
                == (&json!(template), &json!(source), &json!(today))
        });
        assert_eq!(found.unwrap()["calls"], calls, "{template} {source}");
    };
    row(BASE, "direct", 3);
    row("/mpp/ethPrice", "direct", 2);
    row("/mpp/ethPrice", "cli", 1);
    assert_eq!((daily["usage"].as_array().unwrap().len(), &daily["next"]), (3, &json!(null)));
    assert_eq!((&daily["to"], &daily["org_id"]), (&json!(today), &json!(account.org_id)));

    let file = client.get("/credits/usage.csv").expect(200);
    assert_eq!(file.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    let name =
        format!("attachment; filename=\"usage-{}-{}-{today}.csv\"", account.org_id, daily["from"].as_str().unwrap());
    assert_eq!(file.header("content-disposition"), Some(name.as_str()));
    assert_eq!(file.header("link"), None);
    let text = file.text();
    let mut lines = text.split("\r\n");
    assert_eq!(lines.next(), Some("day,route,method,source,calls,credits,key_id,key_name,model"));
    assert!(
        lines.any(|line| line.starts_with(&format!("{today},/mpp/ethPrice,GET,direct,2,0.0013888889,key_"))),
        "{text}"
    );
}

#[test]
fn ledger_is_read_in_parts() {
    let site = Site::new();
    let (account, other) = (site.account("2"), site.account("9"));
    for (credits, reason) in
        [("0.5", "Sorry, for \"Monday\""), ("1", "=HYPERLINK(\"https://example.com\")"), ("3", "thanks")]
    {
        let _ = site.admin_json(&["account", "grant", &account.org_id, "--credits", credits, "--note", reason]);
        let _ = site.admin_json(&["account", "grant", &other.org_id, "--credits", credits]);
    }
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    let whole = client.get("/credits/ledger").expect(200).json();
    let amounts: Vec<_> =
        whole["entries"].as_array().unwrap().iter().map(|entry| entry["amount"].to_string()).collect();
    assert_eq!((amounts.join(" "), &whole["next"]), ("2 0.5 1 3".to_owned(), &json!(null)));
    let (mut entries, mut after) = (Vec::new(), 0);
    loop {
        let part = client.get(&format!("/credits/ledger?limit=3&after={after}")).expect(200).json();
        entries.extend(part["entries"].as_array().unwrap().clone());
        match part["next"].as_i64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(json!(entries), whole["entries"]);

    let file = client.get("/credits/ledger.csv?limit=3").expect(200);
    let text = file.text();
    let lines: Vec<_> = text.split("\r\n").collect();
    assert_eq!(lines[0], "id,created_at,type,credits,description,plan_id,chain_id,tx_hash");
    assert!(lines[2].ends_with(",adjustment,0.5,\"Sorry, for \"\"Monday\"\"\",,,"), "{text}");
    assert!(lines[3].contains("\"'=HYPERLINK("), "no formula: {text}");
    let next = format!("</credits/ledger.csv?after={}&limit=3>; rel=\"next\"", entries[2]["id"]);
    assert_eq!(file.header("link"), Some(next.as_str()));
    assert_eq!(file.header("cache-control"), Some("no-store"));
}

#[test]
fn invalid_parameters_are_refused_after_the_key() {
    let site = Site::new();
    let account = site.account("1");
    let server = site.server().start();
    // path, field
    let table = [
        ("/credits/ledger?after=x", "after"),
        ("/credits/ledger?limit=10001", "limit"),
        ("/credits/ledger.csv?after=-1", "after"),
        ("/credits/usage/daily?from=yesterday", "from"),
        ("/credits/usage/daily?from=2026-11-02&to=2026-11-01", "from"),
        ("/credits/usage.csv?from=2025-01-01&to=2026-01-02", "from"),
        ("/credits/usage.csv?to=2026-13-01", "to"),
        ("/credits/receipts?limit=101", "limit"),
        ("/credits/receipts?before=1&before=2", "before"),
        ("/credits/receipt", "number"),
        ("/credits/receipt?number=1", "number"),
    ];
    for (path, field) in table {
        let refused = server.client_with(&account.api_key).get(path).expect(400);
        assert_eq!(refused.error(), "validation_failed", "{path}");
        assert!(refused.json()["fields"].get(field).is_some(), "{path}: {}", refused.text());
        assert_eq!(server.client().get(path).expect(401).error(), "unauthorized", "{path}");
    }
    let client = server.client_with(&account.api_key);
    let year = client.get("/credits/usage/daily?from=2024-01-01&to=2024-12-31").expect(200).json();
    assert_eq!(year["usage"], json!([]));
    assert_eq!(client.get("/credits/receipt?number=R-1-ABABABABABABABAB").expect(404).error(), "not_found");
    assert_eq!(client.get("/credits/receipts").expect(200).json()["receipts"], json!([]));
}
