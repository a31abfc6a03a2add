//! Verification, and that it fails when it should.

use metering_core::Credits;
use serde::Deserialize;
use serde_json::Value;

use crate::fixture::{Fixture, Printed, block_on, charge, now};

#[derive(Debug, Deserialize)]
struct Verification {
    accounts: u64,
    discrepancies: Vec<Discrepancy>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Discrepancy {
    org_id: String,
    amount: String,
    recorded: Printed,
    computed: Printed,
}

/// Two accounts, the second with a balance of 5 less two base calls.
fn fixture_with_usage() -> (Fixture, String) {
    let fixture = Fixture::new();
    fixture.create("untouched", "123456789.12345678");
    let account = fixture.create("spender", "5");
    let store = fixture.store();
    for _ in 0..2 {
        block_on(charge(store.as_ref(), &account.api_key, "/a", Credits::BASE_CALL, now()));
    }
    (fixture, account.org_id)
}

#[test]
fn books_that_add_up_are_verified() {
    let (fixture, _) = fixture_with_usage();
    let ran = fixture.admin(&["verify", "--json"]).success();
    assert_eq!(ran.stdout, "{\"accounts\":2,\"discrepancies\":[]}\n");
    let text = fixture.admin(&["verify"]).success().stdout;
    assert_eq!(text, "Accounts verified: 2. Everything adds up exactly.\n");
}

#[test]
fn a_store_without_accounts_is_verified() {
    let fixture = Fixture::new();
    fixture.admin_reading(&["plan", "import", "-"], "[]").success();
    assert_eq!(fixture.admin(&["verify", "--json"]).success().stdout, "{\"accounts\":0,\"discrepancies\":[]}\n");
}

#[test]
fn every_tampered_amount_is_found_to_the_atom() {
    const BALANCE: i64 = 5 * 7_200_000_000 - 2_000_000;
    // what is changed, then what is found: amount, recorded and computed in atoms
    type Found = (&'static str, i64, i64);
    let table: [(&str, &[Found]); 5] = [
        ("UPDATE meter SET balance = balance + 1 WHERE account = 2", &[("balance", BALANCE + 1, BALANCE)]),
        ("UPDATE meter SET purchased = 7 WHERE account = 2", &[("purchased", 7, 0)]),
        ("UPDATE meter SET used = used - 72 WHERE account = 2", &[("used", 2_000_000 - 72, 2_000_000)]),
        (
            "DELETE FROM ledger WHERE account = 2",
            &[("balance", BALANCE, -2_000_000), ("granted", 5 * 7_200_000_000, 0)],
        ),
        (
            "UPDATE usage_daily SET amount = amount + 1 WHERE account = 2",
            &[("balance", BALANCE, BALANCE - 1), ("used", 2_000_000, 2_000_001)],
        ),
    ];
    for (sql, expected) in table {
        let (fixture, org) = fixture_with_usage();
        fixture.tamper(sql);
        let ran = fixture.admin(&["verify", "--json"]);
        let found: Verification = ran.json();
        assert!(ran.failure(3).contains("from the sum of ledger, usage and holds"));
        assert_eq!(found.accounts, 2);
        assert!(found.discrepancies.iter().all(|discrepancy| discrepancy.org_id == org), "{found:?}");
        assert_eq!(found.discrepancies.len(), expected.len(), "{sql}: {found:?}");
        for (found, (amount, recorded, computed)) in found.discrepancies.iter().zip(expected) {
            assert_eq!(found.amount, *amount, "{sql}");
            assert_eq!(found.recorded, Credits::from_atoms(*recorded), "{sql}");
            assert_eq!(found.computed, Credits::from_atoms(*computed), "{sql}");
        }
    }
}

/// Only a clock that was set back leaves a budget with less than what is booked.
#[test]
fn a_budget_that_began_again_is_listed_and_is_no_discrepancy() {
    let (fixture, org) = fixture_with_usage();
    let made = ["key", "create", &org, "--name", "batch", "--limit", "3", "--limit-reset", "daily"];
    let made: Value = fixture.json(&made);
    let secret = made["key"].as_str().unwrap();
    block_on(charge(fixture.store().as_ref(), secret, "/a", Credits::BASE_CALL, now()));
    fixture.tamper("UPDATE key_meter SET spent = spent - 1000000");
    let text = fixture.admin(&["verify"]).success().stdout;
    assert!(text.starts_with("Accounts verified: 2. Everything adds up exactly.\n\nA clock was set back"), "{text}");
    assert!(text.contains("key_spent"), "{text}");
    let found: Value = fixture.json(&["verify"]);
    assert_eq!(
        (found["discrepancies"].as_array().map(Vec::len), &found["restarted_budgets"][0]["org_id"]),
        (Some(0), &Value::from(org))
    );
}

#[test]
fn discrepancy_sets_the_exit_code_even_if_stdout_is_closed() {
    let (fixture, org) = fixture_with_usage();
    fixture.tamper("UPDATE meter SET balance = balance + 7200000000 WHERE account = 2");
    let ran = fixture.admin(&["verify"]);
    let rows: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ORG_ID", "AMOUNT", "RECORDED", "COMPUTED"]);
    assert_eq!(rows[1], [org.as_str(), "balance", "5.9997222222", "4.9997222222"]);
    assert_eq!(rows.len(), 2);
    assert!(ran.failure(3).starts_with("1 amount differs"));
    fixture.admin_unread(&["verify"]).failure(3);
}

#[test]
fn money_without_an_account_is_a_failure() {
    let (fixture, _) = fixture_with_usage();
    fixture.tamper("UPDATE usage_daily SET account = 99 WHERE account = 2");
    let message = fixture.admin(&["verify"]).failure(1);
    assert!(message.contains("belong to no account"), "{message}");
}

#[test]
fn backup_of_inconsistent_books_is_kept_and_reported() {
    let (fixture, _) = fixture_with_usage();
    fixture.tamper("UPDATE meter SET balance = 0 WHERE account = 1");
    let ran = fixture.admin(&["backup", "copy.db", "--json"]);
    assert_eq!(ran.json::<Value>()["discrepancies"], 1);
    ran.failure(3);
    fixture.admin(&["--database", "sqlite:copy.db", "verify"]).failure(3);
}
