//! Exports: every row, exact, and harmless in a spreadsheet.

use std::collections::BTreeMap;
use std::fs;

use metering_core::money::ATOMS_PER_CREDIT;
use metering_core::{Credits, Store, Timestamp};
use serde_json::Value;

use crate::fixture::{Fixture, block_on, charge, now};

const LEDGER_HEADINGS: &str = "id,org_id,type,amount,amount_atoms,description,created_at,tx_hash,chain_id,plan_id\n";

type Row = BTreeMap<String, String>;

fn csv_rows(text: &str) -> Vec<Row> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().unwrap()
}

fn atoms(row: &Row, column: &str) -> i64 {
    row[column].parse().unwrap()
}

/// Accounts with all kinds of entries and usage.
fn busy_fixture() -> Fixture {
    busy_fixture_at(now())
}

/// The same, charged at `at`: a test that compares days reads the clock once, and may run across midnight.
fn busy_fixture_at(at: Timestamp) -> Fixture {
    let fixture = Fixture::new();
    let create = ["account", "create", "--agent-name", "-agent", "--email", "=cmd|calc@example.com"];
    let create = [&["account", "create", "--agent-name=-agent"], &create[4..], &["--credits", "123456789.12345678"]];
    let first: Value = fixture.json(&create.concat());
    let second = fixture.create("b", "0.00000001");
    let org = first["org_id"].as_str().unwrap();
    let note = "+SUM(A1), \"quoted\"";
    fixture.admin(&["account", "adjust", org, "--credits=-0.1", "--note", note]).success();
    let store = fixture.store();
    for (key, route, atoms) in [
        (first["api_key"].as_str().unwrap(), "/a/{b}", 1_000_001),
        (first["api_key"].as_str().unwrap(), "/c", 7),
        (&second.api_key, "/a/{b}", 73),
    ] {
        block_on(charge(store.as_ref(), key, route, Credits::from_atoms(atoms), at));
    }
    fixture
}

#[test]
fn the_three_exports_add_up_to_the_atom() {
    let at = now();
    let fixture = busy_fixture_at(at);
    let export = |what| csv_rows(&fixture.admin(&["export", what]).success().stdout);
    let (accounts, ledger, usage) = (export("accounts"), export("ledger"), export("usage"));
    assert_eq!((accounts.len(), ledger.len(), usage.len()), (2, 3, 3));
    for account in &accounts {
        let of_account = |rows: &[Row], column: &str| -> i64 {
            rows.iter().filter(|row| row["org_id"] == account["org_id"]).map(|row| atoms(row, column)).sum()
        };
        let (added, used) = (of_account(&ledger, "amount_atoms"), of_account(&usage, "credits_used_atoms"));
        assert_eq!(atoms(account, "credit_balance_atoms"), added - used);
        assert_eq!(atoms(account, "total_credits_granted_atoms"), added);
        assert_eq!(atoms(account, "total_credits_used_atoms"), used);
        let text = Credits::from_atoms(added - used).to_string();
        assert_eq!(account["credit_balance"], text);
    }
    assert_eq!(atoms(&accounts[1], "credit_balance_atoms"), 72 - 73, "the last call may take the balance below zero");
    assert_eq!((ledger[2]["amount"].as_str(), atoms(&ledger[2], "amount_atoms")), ("-0.1", -ATOMS_PER_CREDIT / 10));
    let days: Vec<_> = usage.iter().map(|row| row["day"].clone()).collect();
    assert!(days.iter().all(|day| *day == at.day().to_string()), "{days:?}");
    assert!(usage.iter().all(|row| row["client_source"] == "cli" && row["calls"] == "1"));
}

#[test]
fn json_lines_match_csv_with_unescaped_text() {
    let fixture = busy_fixture();
    for what in ["accounts", "ledger", "usage"] {
        let csv = csv_rows(&fixture.admin(&["export", what]).success().stdout);
        let lines = fixture.admin(&["export", what, "--format", "jsonl"]).success().stdout;
        assert_eq!(csv.len(), lines.lines().count());
        for (row, line) in csv.iter().zip(lines.lines()) {
            let object: BTreeMap<String, Box<serde_json::value::RawValue>> = serde_json::from_str(line).unwrap();
            assert!(object.keys().eq(row.keys()), "{line}");
            for (name, raw) in &object {
                let cell = row[name].as_str();
                match raw.get() {
                    "null" => assert_eq!(cell, ""),
                    text if text.starts_with('"') => {
                        let text: String = serde_json::from_str(text).unwrap();
                        assert_eq!(cell.strip_prefix('\'').unwrap_or(cell), text);
                    }
                    number => assert_eq!(cell, number, "{name}"),
                }
            }
        }
    }
}

#[test]
fn csv_cells_are_never_formulas_but_negative_amounts_stay() {
    let fixture = busy_fixture();
    let accounts = csv_rows(&fixture.admin(&["export", "accounts"]).success().stdout);
    assert_eq!(
        (accounts[0]["agent_name"].as_str(), accounts[0]["email"].as_str()),
        ("'-agent", "'=cmd|calc@example.com")
    );
    let ledger = csv_rows(&fixture.admin(&["export", "ledger"]).success().stdout);
    assert_eq!(ledger[2]["description"], "'+SUM(A1), \"quoted\"");
    for row in accounts.iter().chain(&ledger) {
        for (name, cell) in row {
            let digits = cell.strip_prefix('-').unwrap_or(cell);
            let number = digits.starts_with(|c: char| c.is_ascii_digit())
                && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
            assert!(number || !cell.starts_with(['=', '+', '-', '@']), "{name}: {cell}");
        }
    }
}

#[test]
fn export_writes_to_a_new_file() {
    let fixture = busy_fixture();
    let printed = fixture.admin(&["export", "ledger"]).success().stdout;
    let before = fixture.files();
    let to_file = ["export", "ledger", "--output", "ledger.csv"];
    assert_eq!(fixture.admin(&to_file).success().stdout, "");
    assert_eq!(fs::read_to_string(fixture.path("ledger.csv")).unwrap(), printed);
    assert!(fixture.admin(&to_file).failure(5).contains("--force"));
    fs::write(fixture.path("ledger.csv"), "old").unwrap();
    fixture.admin(&[&to_file[..], &["--force"]].concat()).success();
    assert_eq!(fs::read_to_string(fixture.path("ledger.csv")).unwrap(), printed);
    assert_eq!(fixture.admin(&["export", "ledger", "--output", "-"]).success().stdout, printed);
    fixture.admin(&["export", "ledger", "--output", "missing/ledger.csv"]).failure(1);
    assert_eq!(fixture.files(), before + 1);
    fixture.admin(&["export", "everything"]).misuse();
    fixture.admin(&["export", "ledger", "--format", "xml"]).misuse();
}

#[test]
fn empty_export_has_only_headings() {
    let fixture = Fixture::new();
    fixture.admin_reading(&["plan", "import", "-"], "[]").success();
    let ledger = fixture.admin(&["export", "ledger"]).success().stdout;
    assert_eq!(ledger, LEDGER_HEADINGS);
    let payments = fixture.admin(&["export", "payments"]).success().stdout;
    assert_eq!(payments.lines().count(), 1, "{payments}");
    assert_eq!(fixture.admin(&["export", "ledger", "--format", "jsonl"]).success().stdout, "");
}

#[test]
fn every_page_of_a_long_list_is_exported_once() {
    let fixture = Fixture::new();
    let account = fixture.create("a", "1000");
    let store = fixture.store();
    let days = 2_500_u32;
    let first = metering_core::Day::from_unix_days(10_000);
    block_on(async {
        for day in 0..i64::from(days) {
            let at = metering_core::Day::from_unix_days(first.unix_days() + day).start();
            charge(store.as_ref(), &account.api_key, "/a", Credits::BASE_CALL, at).await;
        }
        store.check().await.unwrap();
    });
    let usage = csv_rows(&fixture.admin(&["export", "usage"]).success().stdout);
    assert_eq!(usage.len(), 2_500);
    assert!(usage.windows(2).all(|pair| pair[0]["day"] < pair[1]["day"]));
    let total: i64 = usage.iter().map(|row| atoms(row, "credits_used_atoms")).sum();
    assert_eq!(total, 2_500 * 1_000_000);
}
