//! Held credits: shown, listed, exported and verified.

use std::time::Duration;

use metering_core::charging::{HoldAction, HoldId, HoldTerms, HoldUpdate, Outcome, Posting};
use metering_core::{ApiKey, Charge, Credits, Decision, Store, SystemRandomness, Timestamp};
use serde_json::Value;

use super::{failed, now};
use crate::program::Program;
use crate::store::block_on;

/// Holds credits through an open store, as a server does.
async fn hold(store: &dyn Store, key: &str, amount: &str, now: Timestamp) -> HoldId {
    let terms = HoldTerms::new(&SystemRandomness, Duration::from_secs(120), Credits::ZERO);
    let charge = Charge::new(&ApiKey::parse(key).unwrap(), amount.parse().unwrap(), "POST", "/chat");
    let charge = charge.with_path("/chat?a=\u{1b}").with_hold(terms);
    let outcomes = store.commit(vec![Posting::Charge(charge)], now).await.unwrap();
    assert!(matches!(outcomes[..], [Outcome::Decided(Decision::Accepted(_))]), "{outcomes:?}");
    terms.id
}

async fn settle(store: &dyn Store, org: &str, id: HoldId, action: HoldAction, now: Timestamp) {
    let update = HoldUpdate::new(org.parse().unwrap(), id, action);
    let outcomes = store.commit(vec![Posting::Hold(update)], now).await.unwrap();
    assert!(matches!(&outcomes[..], [Outcome::Hold(Some(updated))] if updated.changed), "{outcomes:?}");
}

/// An account with a balance of 9.23: it has 10 credits, holds 0.75 (`$older` and `$newer`), and was charged 0.02 for a
/// request that is settled (`$captured`); another one was released (`$released`).
fn scene() -> Program {
    let (program, account) = Program::with_account();
    let (store, now, key) = (program.store(), now(), account.api_key.as_str());
    let after = |seconds| now.saturating_add(Duration::from_secs(seconds));
    block_on(async {
        let (older, newer) = (hold(&*store, key, "0.25", now).await, hold(&*store, key, "0.5", after(1)).await);
        let (captured, released) = (hold(&*store, key, "0.5", now).await, hold(&*store, key, "1", now).await);
        let cost = HoldAction::Capture { cost: "0.02".parse().unwrap(), may_exceed: false };
        settle(&*store, &account.org_id, captured, cost, after(2)).await;
        settle(&*store, &account.org_id, released, HoldAction::Release, after(2)).await;
        for (name, id) in [("older", older), ("newer", newer), ("captured", captured), ("released", released)] {
            program.call(name, id.to_string());
        }
    });
    program.call("first", program.json::<Value>("key list $org")["data"][0]["id"].as_str().unwrap());
    program
}

#[test]
fn an_account_is_shown_with_what_it_holds() {
    let program = scene();
    let amounts = [("/credit_balance", "9.23"), ("/credits_held", "0.75"), ("/total_credits_used", "0.02")];
    program.documents(&[("account show $org", &amounts)]);
    program.prints(&[("account show $org", &["\nHeld                 0.75\n"])]);
    let row = &program.rows("account list")[0];
    assert!(row.starts_with(&program.text("$org my-agent - 9.23 0.75 0.02")), "{row}");
    let text = program.run("export accounts").success();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let headings = rows.headers().unwrap().clone();
    let row = rows.records().next().unwrap().unwrap();
    let atoms = |name: &str| row[headings.iter().position(|heading| heading == name).unwrap()].parse::<i64>().unwrap();
    let (granted, used) = (atoms("total_credits_granted_atoms"), atoms("total_credits_used_atoms"));
    assert_eq!(atoms("credits_held_atoms"), 5_400_000_000);
    assert_eq!(atoms("credit_balance_atoms"), granted - used - atoms("credits_held_atoms"));
}

#[test]
fn open_requests_are_listed_newest_first() {
    let program = scene();
    let listed = [
        ("/requests/0/request/id", "\"$newer\""),
        ("/requests/1/request/id", "\"$older\""),
        ("/requests/1/org_id", "\"$org\""),
        ("/requests/1/key_id", "\"$first\""),
        ("/requests/2", ""),
    ];
    program.documents(&[("request list $org", &listed)]);
    program.tabulates(&[("request list $org", &["REQUEST ROUTE HELD ACCEPTED LEASE ENDS"])]);
    let rows = program.rows("request list $org");
    assert!(rows[0].starts_with(&program.text("$newer POST /chat?a=\u{fffd} 0.5")), "{rows:?}");
    assert!(rows[1].contains(" 0.25 ") && rows.len() == 2, "{rows:?}");
}

#[test]
fn a_request_of_any_account_is_found_by_its_id() {
    let program = scene();
    // request, state, held, charged, released, why
    for (id, [state, held, charged, released, why]) in [
        ("$older", ["\"held\"", "0.25", "0", "0", "null"]),
        ("$captured", ["\"captured\"", "0", "0.02", "0.48", "\"report\""]),
        ("$released", ["\"released\"", "0", "0", "1", "\"release\""]),
    ] {
        let expected = [
            ("/org_id", "\"$org\""),
            ("/request/state", state),
            ("/request/held", held),
            ("/request/charged", charged),
            ("/request/released", released),
            ("/request/settled_by", why),
        ];
        program.documents(&[(&format!("request show {id}"), &expected)]);
    }
    let lines = [
        "Account     $org\n",
        "Charged     0.02\n",
        "Released    0.48\n",
        "Why         the response reported its cost\n",
    ];
    program.prints(&[("request show $captured", &lines)]);
    let unknown = "req_00000000000000000000000000000000";
    program.refuses(&[
        (&format!("request show {unknown}"), 4, unknown),
        (&format!("request show {unknown}"), 4, "kept for a day"),
        ("request show req_42", 2, "req_42"),
        ("request show", 2, ""),
        ("request list x", 2, ""),
    ]);
}

#[test]
fn holds_that_do_not_add_up_are_found() {
    let program = scene();
    program.run("verify").success();
    let digits = program.text("$older").split_off("req_".len());
    program.tamper(&format!("UPDATE hold SET amount = amount + 7 WHERE id = x'{digits}'"));
    let ran = program.run("verify --json");
    let found: Value = ran.json();
    let amounts: Vec<_> = found["discrepancies"].as_array().unwrap().iter().map(|of| &of["amount"]).collect();
    assert_eq!(amounts, ["balance", "held"], "{found}");
    assert!(failed(ran, 3).contains("ledger, usage and holds"));
}
