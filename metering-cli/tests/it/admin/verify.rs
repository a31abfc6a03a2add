//! Verification, and that it fails when it should.

use metering_core::Credits;
use serde_json::Value;

use super::{charge, failed, now};
use crate::program::{Program, one_space};
use crate::store::block_on;

/// Two accounts, the second with a balance of 5 less two base calls.
fn with_usage() -> Program {
    let program = Program::without_store();
    program.create("untouched", "123456789.12345678");
    let account = program.create("spender", "5");
    for _ in 0..2 {
        base_call(&program, &account.api_key);
    }
    program
}

fn base_call(program: &Program, key: &str) {
    block_on(charge(&*program.store(), key, "/a", Credits::BASE_CALL, now()));
}

#[test]
fn books_that_add_up_are_verified() {
    let program = Program::without_store();
    program.reading("plan import -", "[]").success();
    assert_eq!(program.run("verify --json").success(), "{\"accounts\":0,\"discrepancies\":[]}\n");
    let program = with_usage();
    assert_eq!(program.run("verify --json").success(), "{\"accounts\":2,\"discrepancies\":[]}\n");
    assert_eq!(program.run("verify").success(), "Accounts verified: 2. Everything adds up exactly.\n");
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
        let program = with_usage();
        program.tamper(sql);
        // As text, so that no digit is lost.
        let found = expected.iter().map(|(amount, recorded, computed)| {
            let [recorded, computed] = [recorded, computed].map(|atoms| Credits::from_atoms(*atoms));
            let amounts = format!("\"amount\":\"{amount}\",\"recorded\":{recorded},\"computed\":{computed}");
            program.text(&format!("{{\"org_id\":\"$org\",{amounts}}}"))
        });
        let found = format!("{{\"accounts\":2,\"discrepancies\":[{}]}}\n", found.collect::<Vec<_>>().join(","));
        let ran = program.run("verify --json");
        assert_eq!(ran.stdout, found, "{sql}");
        assert!(failed(ran, 3).contains("from the sum of ledger, usage and holds"));
    }
}

/// Only a clock that was set back leaves a budget with less than what is booked.
#[test]
fn a_budget_that_began_again_is_listed_and_is_no_discrepancy() {
    let program = with_usage();
    let made: Value = program.json("key create $org --name batch --limit 3 --limit-reset daily");
    base_call(&program, made["key"].as_str().unwrap());
    program.tamper("UPDATE key_meter SET spent = spent - 1000000");
    let text = program.run("verify").success();
    assert!(text.starts_with("Accounts verified: 2. Everything adds up exactly.\n\nA clock was set back"), "{text}");
    assert!(text.contains("key_spent"), "{text}");
    let found = [("/discrepancies", "[]"), ("/restarted_budgets/0/org_id", "\"$org\"")];
    program.documents(&[("verify", &found)]);
}

#[test]
fn discrepancy_sets_the_exit_code_even_if_stdout_is_closed() {
    let program = with_usage();
    program.tamper("UPDATE meter SET balance = balance + 7200000000 WHERE account = 2");
    let ran = program.run("verify");
    let rows: Vec<String> = ran.stdout.lines().map(one_space).collect();
    let found = program.text("$org balance 5.9997222222 4.9997222222");
    assert_eq!(rows, ["ACCOUNT AMOUNT RECORDED COMPUTED".to_owned(), found]);
    assert!(failed(ran, 3).starts_with("1 amount differs"));
    failed(program.unread("verify"), 3);
    // A backup of inconsistent books is kept and reported.
    let ran = program.run("backup copy.db --json");
    assert_eq!(ran.json::<Value>()["discrepancies"], 1);
    failed(ran, 3);
    program.refuses(&[("--database sqlite:copy.db verify", 3, "1 amount differs")]);
    program.tamper("UPDATE usage_daily SET account = 99 WHERE account = 2");
    program.refuses(&[("verify", 1, "belong to no account")]);
}
