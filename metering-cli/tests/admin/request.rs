//! Held credits: shown, listed, exported and verified.

use std::time::Duration;

use metering_core::charging::{HoldAction, HoldId, HoldTerms, HoldUpdate, Outcome, Posting};
use metering_core::{ApiKey, Charge, Credits, Decision, Store, SystemRandomness, Timestamp};
use serde_json::Value;

use crate::fixture::{Fixture, Issued, UNKNOWN_ACCOUNT, block_on, now};

const UNKNOWN_REQUEST: &str = "req_00000000000000000000000000000000";

/// Holds credits through an open store, as a server does.
async fn hold(store: &dyn Store, key: &str, amount: &str, now: Timestamp) -> HoldId {
    let amount: Credits = amount.parse().unwrap();
    let terms = HoldTerms::new(&SystemRandomness, Duration::from_secs(120), Credits::ZERO);
    let charge = Charge::new(&ApiKey::parse(key).unwrap(), amount, "POST", "/chat");
    let charge = charge.with_path("/chat?a=\u{1b}").with_hold(terms);
    let outcomes = store.commit(vec![Posting::Charge(charge)], now).await.unwrap();
    assert!(matches!(outcomes[..], [Outcome::Decided(Decision::Accepted(_))]), "{outcomes:?}");
    terms.id
}

async fn settle(store: &dyn Store, org: &str, id: HoldId, action: HoldAction, now: Timestamp) {
    let update = HoldUpdate { account: org.parse().unwrap(), id, action, delivery: None, counted_in: None };
    let outcomes = store.commit(vec![Posting::Hold(update)], now).await.unwrap();
    assert!(matches!(&outcomes[..], [Outcome::Hold(Some(updated))] if updated.changed), "{outcomes:?}");
}

/// An account with a balance of 9.23: it has 10 credits, holds 0.75, and was charged 0.02 for a request that is
/// settled.
struct Scene {
    fixture: Fixture,
    account: Issued,
    open: [HoldId; 2],
    captured: HoldId,
    released: HoldId,
}

impl Scene {
    fn new() -> Self {
        let fixture = Fixture::new();
        let account = fixture.create("my-agent", "10");
        let (store, now, key) = (fixture.store(), now(), account.api_key.as_str());
        let (open, captured, released) = block_on(async {
            let store = store.as_ref();
            let open = [hold(store, key, "0.25", now).await, hold(store, key, "0.5", after(now, 1)).await];
            let (captured, released) = (hold(store, key, "0.5", now).await, hold(store, key, "1", now).await);
            let cost = HoldAction::Capture { cost: "0.02".parse().unwrap(), may_exceed: false };
            settle(store, &account.org_id, captured, cost, after(now, 2)).await;
            settle(store, &account.org_id, released, HoldAction::Release, after(now, 2)).await;
            (open, captured, released)
        });
        Self { fixture, account, open, captured, released }
    }

    /// `metering admin request show ID --json`.
    fn show(&self, id: HoldId) -> Value {
        self.fixture.json(&["request", "show", &id.to_string()])
    }
}

fn after(now: Timestamp, seconds: u64) -> Timestamp {
    now.saturating_add(Duration::from_secs(seconds))
}

#[test]
fn an_account_is_shown_with_what_it_holds() {
    let scene = Scene::new();
    let org = scene.account.org_id.as_str();
    let account: Value = scene.fixture.json(&["account", "show", org]);
    let amounts = ["credit_balance", "credits_held", "total_credits_used"].map(|name| account[name].to_string());
    assert_eq!(amounts, ["9.23", "0.75", "0.02"]);
    let text = scene.fixture.admin(&["account", "show", org]).success().stdout;
    assert!(text.lines().any(|line| line == "Held                 0.75"), "{text}");
    let table = scene.fixture.admin(&["account", "list"]).success().stdout;
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..6], [org, "my-agent", "-", "9.23", "0.75", "0.02"], "{table}");
}

#[test]
fn open_requests_are_listed_newest_first() {
    let scene = Scene::new();
    let org = scene.account.org_id.as_str();
    let list: Value = scene.fixture.json(&["request", "list", org]);
    let requests = list["requests"].as_array().unwrap();
    let [older, newer] = scene.open.map(|id| id.to_string());
    let ids: Vec<_> = requests.iter().map(|of| of["request"]["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [newer.as_str(), older.as_str()]);
    let keys: Value = scene.fixture.json(&["key", "list", org]);
    for of in requests {
        assert_eq!((&of["org_id"], &of["key_id"]), (&Value::from(org), &keys["data"][0]["id"]));
    }
    let table = scene.fixture.admin(&["request", "list", org]).success().stdout;
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["REQUEST", "ROUTE", "HELD", "ACCEPTED", "LEASE_ENDS"]);
    assert_eq!(rows[1][..4], [newer.as_str(), "POST", "/chat?a=\u{fffd}", "0.5"], "{table}");
    assert_eq!((rows[2][3], rows.len()), ("0.25", 3));
}

#[test]
fn a_request_of_any_account_is_found_by_its_id() {
    let scene = Scene::new();
    // request, state, held, charged, released, why
    let table = [
        (scene.open[0], "held", "0.25", "0", "0", Value::Null),
        (scene.captured, "captured", "0", "0.02", "0.48", "report".into()),
        (scene.released, "released", "0", "0", "1", "release".into()),
    ];
    for (id, state, held, charged, released, why) in table {
        let of = scene.show(id);
        let request = &of["request"];
        assert_eq!((&of["org_id"], &request["state"]), (&Value::from(scene.account.org_id.as_str()), &state.into()));
        let amounts = ["held", "charged", "released"].map(|name| request[name].to_string());
        assert_eq!((amounts.each_ref().map(String::as_str), &request["settled_by"]), ([held, charged, released], &why));
    }
    let text = scene.fixture.admin(&["request", "show", &scene.captured.to_string()]).success().stdout;
    let account = format!("Account     {}", scene.account.org_id);
    for line in [account.as_str(), "Charged     0.02", "Released    0.48", "Why         the response said what it cost"]
    {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
}

#[test]
fn unknown_requests_and_accounts_are_not_found() {
    let scene = Scene::new();
    let missing = scene.fixture.admin(&["request", "show", UNKNOWN_REQUEST]).failure(4);
    assert!(missing.contains(UNKNOWN_REQUEST) && missing.contains("kept for a day"), "{missing}");
    scene.fixture.admin(&["request", "list", UNKNOWN_ACCOUNT]).failure(4);
    for args in [&["request", "show", "req_42"][..], &["request", "show"], &["request", "list", "x"]] {
        scene.fixture.admin(args).misuse();
    }
}

#[test]
fn exported_accounts_add_up_with_what_they_hold() {
    let scene = Scene::new();
    let text = scene.fixture.admin(&["export", "accounts"]).success().stdout;
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let headings = rows.headers().unwrap().clone();
    let row = rows.records().next().unwrap().unwrap();
    let atoms =
        |name: &str| -> i64 { row[headings.iter().position(|heading| heading == name).unwrap()].parse().unwrap() };
    let (granted, used) = (atoms("total_credits_granted_atoms"), atoms("total_credits_used_atoms"));
    assert_eq!(atoms("credits_held_atoms"), 5_400_000_000);
    assert_eq!(atoms("credit_balance_atoms"), granted - used - atoms("credits_held_atoms"));
}

#[test]
fn holds_that_do_not_add_up_are_found() {
    let scene = Scene::new();
    scene.fixture.admin(&["verify"]).success();
    let open = scene.open[0].to_string();
    let digits = open.strip_prefix("req_").unwrap();
    scene.fixture.tamper(&format!("UPDATE hold SET amount = amount + 7 WHERE id = x'{digits}'"));
    let ran = scene.fixture.admin(&["verify", "--json"]);
    let found: Value = ran.json();
    let amounts: Vec<_> = found["discrepancies"].as_array().unwrap().iter().map(|of| of["amount"].clone()).collect();
    assert_eq!(amounts, ["balance", "held"], "{found}");
    assert!(ran.failure(3).contains("ledger, usage and holds"));
}
