//! Verification, and that it fails when it should.

use metering_core::Credits;
use serde::Deserialize;
use serde_json::Value;

use crate::desk::{Desk, Printed, block_on, charge, now};

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
fn desk_with_usage() -> (Desk, String) {
    let desk = Desk::new();
    desk.create("untouched", "123456789.12345678");
    let account = desk.create("spender", "5");
    let store = desk.store();
    for _ in 0..2 {
        block_on(charge(store.as_ref(), &account.api_key, "/a", Credits::BASE_CALL, now()));
    }
    (desk, account.org_id)
}

#[test]
fn books_that_add_up_are_verified() {
    let (desk, _) = desk_with_usage();
    let ran = desk.admin(&["verify", "--json"]).success();
    assert_eq!(ran.stdout, "{\"accounts\":2,\"discrepancies\":[]}\n");
    let text = desk.admin(&["verify"]).success().stdout;
    assert_eq!(text, "Accounts verified: 2. Everything adds up exactly.\n");
}

#[test]
fn a_store_without_accounts_is_verified() {
    let desk = Desk::new();
    desk.admin_reading(&["plan", "import", "-"], "[]").success();
    assert_eq!(desk.admin(&["verify", "--json"]).success().stdout, "{\"accounts\":0,\"discrepancies\":[]}\n");
}

#[test]
fn every_amount_that_was_tampered_with_is_found_to_the_atom() {
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
        let (desk, org) = desk_with_usage();
        desk.tamper(sql);
        let ran = desk.admin(&["verify", "--json"]);
        let found: Verification = ran.json();
        assert!(ran.failure(3).contains("from the sum of ledger and usage"));
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

#[test]
fn a_discrepancy_is_shown_to_people_and_named_by_the_exit_code_even_when_nobody_reads() {
    let (desk, org) = desk_with_usage();
    desk.tamper("UPDATE meter SET balance = balance + 7200000000 WHERE account = 2");
    let ran = desk.admin(&["verify"]);
    let rows: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ORG_ID", "AMOUNT", "RECORDED", "COMPUTED"]);
    assert_eq!(rows[1], [org.as_str(), "balance", "5.9997222222", "4.9997222222"]);
    assert_eq!(rows.len(), 2);
    assert!(ran.failure(3).starts_with("1 amount differs"));
    desk.admin_unread(&["verify"]).failure(3);
}

#[test]
fn money_that_belongs_to_nobody_is_a_failure() {
    let (desk, _) = desk_with_usage();
    desk.tamper("UPDATE usage_daily SET account = 99 WHERE account = 2");
    let message = desk.admin(&["verify"]).failure(1);
    assert!(message.contains("belong to no account"), "{message}");
}

#[test]
fn a_backup_of_books_that_do_not_add_up_is_kept_and_says_so() {
    let (desk, _) = desk_with_usage();
    desk.tamper("UPDATE meter SET balance = 0 WHERE account = 1");
    let ran = desk.admin(&["backup", "copy.db", "--json"]);
    assert_eq!(ran.json::<Value>()["discrepancies"], 1);
    ran.failure(3);
    desk.admin(&["--database", "sqlite:copy.db", "verify"]).failure(3);
}
