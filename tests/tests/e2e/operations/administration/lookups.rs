//! Lookups by operators over their API: one search, lists newest first, things that need attention, and a rehearsal.

use metering_tests::client::Client;
use serde_json::{Value, json};

use super::Console;

fn names(document: &Value) -> Vec<&str> {
    let accounts = document["accounts"].as_array().unwrap();
    accounts.iter().map(|account| account["agent_name"].as_str().unwrap()).collect()
}

#[test]
fn one_search_finds_by_the_form_of_the_text() {
    let console = Console::start();
    let (org, secret) = console.account("my-agent", 5);
    let _ = console.account("other", 5);
    let search = |q: &str| console.viewer().get(&format!("/admin/search?q={q}"));
    let table: [(&str, &str, &[&str]); 5] = [
        (&org, "account", &["my-agent"]),
        ("my", "name", &["my-agent"]),
        ("nobody%40example.com", "email", &[]),
        ("R-1-ABABABABABABABAB", "receipt", &[]),
        ("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "wallet", &[]),
    ];
    for (q, kind, expected) in table {
        let found = search(q).expect(200).json();
        assert_eq!((&found["kind"], names(&found)), (&json!(kind), expected.to_vec()), "{q}");
    }
    let refused = search(&secret).expect(400);
    assert!(refused.text().contains("by the key's id") && !refused.text().contains(&secret), "{refused:?}");
    for q in ["", "0x12", "jo%40localhost"] {
        assert_eq!(search(q).expect(400).error(), "validation_failed", "{q}");
    }
    let _ = console.viewer().get("/admin/search").expect(400);
    let _ = Client::new(console.admin).get("/admin/search?q=my").expect(401);
    assert!(!console.server.log().contains(&secret));
}

#[test]
fn lists_may_be_newest_first_and_filtered() {
    let console = Console::start();
    for name in ["first", "second", "third"] {
        let _ = console.account(name, 1);
    }
    let get = |path: &str| console.viewer().get(path).expect(200).json();
    assert_eq!(names(&get("/admin/accounts")), ["first", "second", "third"]);
    let page = get("/admin/accounts?order=newest&limit=2");
    assert_eq!(names(&page), ["third", "second"]);
    let after = page["next"].as_str().unwrap();
    assert_eq!(names(&get(&format!("/admin/accounts?order=newest&limit=2&after={after}"))), ["first"]);
    assert_eq!(names(&get("/admin/accounts?order=newest&state=revoked")), [""; 0]);
    assert_eq!(names(&get("/admin/accounts?order=newest&to=2020-01-01")), [""; 0]);
    assert_eq!(names(&get("/admin/accounts?order=newest&search=SECOND")), ["second"]);
    assert_eq!(get("/admin/payments?order=newest&state=reversed")["payments"], json!([]));
    let org = get("/admin/accounts")["accounts"][0]["org_id"].as_str().unwrap().to_owned();
    let ledger = get(&format!("/admin/accounts/{org}/ledger?order=newest"));
    assert_eq!(ledger["entries"].as_array().unwrap().len(), 1);
    assert_eq!(get("/admin/audit?action=account.create")["entries"].as_array().unwrap().len(), 3);
    assert_eq!(get("/admin/audit?to=2020-01-01")["entries"], json!([]));
    for path in ["/admin/accounts?state=revoked", "/admin/accounts?order=latest", "/admin/payments?from=yesterday"] {
        assert_eq!(console.viewer().get(path).expect(400).error(), "validation_failed", "{path}");
    }
}

#[test]
fn nothing_needs_attention_at_first() {
    let console = Console::start();
    let attention = || console.viewer().get("/admin/attention").expect(200).json();
    let nothing = attention();
    for kind in ["unclaimed", "to_refund", "webhooks", "running_out"] {
        assert_eq!(nothing[kind], json!([]), "{kind}");
    }
    let _ = Client::new(console.admin).get("/admin/attention").expect(401);
    // Pages are of one list.
    let get = |query: &str| console.viewer().get(&format!("/admin/attention?{query}"));
    assert_eq!(get("kind=webhooks&limit=1").expect(200).json()["next"]["webhooks"], json!(null));
    for query in ["kind=payments", "after=x", "kind=unclaimed&after=x", "kind=webhooks&after=x", "limit=0"] {
        assert_eq!(get(query).expect(400).error(), "validation_failed", "{query}");
    }
}

#[test]
fn catalogue_is_rehearsed_for_a_viewer() {
    let console = Console::start();
    let served = console.viewer().get("/admin/catalogue").expect(200).json();
    let found = console.viewer().post("/admin/catalogue/rehearse?days=7", &served).expect(200).json();
    assert_eq!((&found["totals"]["calls"], &found["run_outs"]), (&json!(0), &json!(0)));
    let wrong = console.viewer().post("/admin/catalogue/rehearse", &json!({"endpoints": 1})).expect(400);
    assert_eq!(wrong.error(), "validation_failed");
}

#[test]
fn report_may_end_on_an_earlier_day() {
    let console = Console::start();
    let _ = console.account("my-agent", 5);
    let report = console.viewer().get("/admin/report?days=7&until=2020-01-07").expect(200).json();
    assert_eq!((&report["from"], &report["to"]), (&json!("2020-01-01"), &json!("2020-01-07")));
    assert_eq!((&report["by_day"], &report["revenue"]), (&json!([]), &json!([])));
    let _ = console.viewer().get("/admin/report?until=today").expect(400);
}
