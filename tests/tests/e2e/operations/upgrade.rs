//! Databases written by the first version, with data of every kind, opened by today's programs.
//!
//! `upgrade/*.sql` are dumps of that version's databases after a day's work on a test chain: accounts (one revoked, one
//! out of credit), a rotated key, usage from several clients, a claimed quote, a quote that the watcher settled and no
//! one claimed, unpaid quotes, top-ups, a linked wallet, an assigned payment, signups and an open challenge. They are
//! never edited. The `.json` next to each has the values that version reported.

use metering_tests::postgres::{fresh_schema, run_in};
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::wire::BASE;

#[test]
fn first_version_sqlite_database_is_upgraded_in_place() {
    let site = Site::new();
    std::fs::create_dir_all(site.data()).unwrap();
    let database = rusqlite::Connection::open(site.database()).unwrap();
    database.pragma_update(None, "journal_mode", "WAL").unwrap();
    database.execute_batch(include_str!("upgrade/sqlite.sql")).unwrap();
    drop(database);
    assert_everything_kept(&site, include_str!("upgrade/sqlite.json"));
}

#[test]
fn first_version_postgres_database_is_upgraded_in_place() {
    let Some(url) = fresh_schema() else { return };
    let dump = include_str!("upgrade/postgres.sql");
    let _ = run_in(&url, dump);
    assert_everything_kept(&Site::on_database(url), include_str!("upgrade/postgres.json"));
}

#[track_caller]
fn assert_everything_kept(site: &Site, facts: &str) {
    let facts: Value = serde_json::from_str(facts).unwrap();
    let accounts = site.admin_json(&["account", "list"]);
    for (name, expected) in facts["accounts"].as_object().unwrap() {
        let all = accounts["accounts"].as_array().unwrap();
        let account = all.iter().find(|account| account["agent_name"] == **name).unwrap();
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(account[field], *value, "{field} of {name}");
        }
    }
    site.verify();

    let server = site.server().start();
    let client = |name: &str| server.client_with(facts["keys"][name].as_str().unwrap());
    // key, status of a metered request
    for (name, status) in [("a", 200), ("b", 402), ("c", 401), ("d", 200), ("w0", 200), ("redeemed", 200)] {
        let _ = client(name).get(BASE).expect(status);
    }
    let activity = client("a").get("/credits/usage?limit=1000").expect(200).json();
    let entries = activity["transactions"].as_array().unwrap();
    assert_eq!(entries.iter().filter(|entry| entry["type"] == "usage").count(), 123, "122 old and 1 new");
    assert_eq!(entries.iter().filter(|entry| entry["type"] == "purchase_topup").count(), 1);

    // Receipts have the known data of the plan, which excludes the bonus of that day.
    let receipts = client("w0").get("/credits/receipts").expect(200).json();
    let receipts = receipts["receipts"].as_array().unwrap();
    assert_eq!(receipts.len(), 2, "{receipts:?}");
    for receipt in receipts {
        assert_eq!((&receipt["plan_label"], &receipt["bonus_credits"]), (&json!("Coin"), &Value::Null));
        assert_eq!(receipt["payment"]["token_symbol"], "ETH");
    }
    assert_eq!(receipts[0]["payment"]["token_amount"], "0.5");

    // The first version's watcher settled this quote; its owner claims the key only now.
    let quote = &facts["unclaimed_quote"];
    let claim = json!({"signup_nonce": quote["signup_nonce"], "tx_hash": quote["tx_hash"]});
    let claimed = server.client().post("/signup/pay/claim", &claim).expect(200).json();
    assert_eq!(claimed["org_id"], facts["accounts"]["w1"]["org_id"]);
    let _ = server.client_with(claimed["api_key"].as_str().unwrap()).get(BASE).expect(200);
    let _ = server.client().post("/signup/pay/claim", &claim).expect(409);
    site.verify();
}
