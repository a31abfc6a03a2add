//! Exports: every row, exact, and harmless in a spreadsheet.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use metering_core::money::ATOMS_PER_CREDIT;
use metering_core::{Credits, Day, Store, Timestamp};
use metering_tests::{skipped, venv};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{charge, now};
use crate::program::{Program, mode};
use crate::store::block_on;

const LEDGER_HEADINGS: &str = "id,org_id,type,amount,amount_atoms,description,created_at,tx_hash,chain_id,plan_id\n";

type Row = BTreeMap<String, String>;

fn export(program: &Program, what: &str) -> Vec<Row> {
    let text = program.run(&format!("export {what}")).success();
    csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().unwrap()
}

fn atoms(row: &Row, column: &str) -> i64 {
    row[column].parse().unwrap()
}

/// Accounts with all kinds of entries and usage; and when they were charged.
fn busy() -> (Program, Timestamp) {
    let (program, now) = (Program::without_store(), now());
    let create = "account create --agent-name=-agent --email =cmd|calc@example.com --credits 123456789.12345678";
    let first: Value = program.json(create);
    program.call("first", first["org_id"].as_str().unwrap());
    let second = program.create("b", "0.00000001");
    program.run("account adjust $first --credits=-0.1 --note '+SUM(A1), \"quoted\"'").success();
    let (store, first) = (program.store(), first["api_key"].as_str().unwrap());
    for (key, route, atoms) in [(first, "/a/{b}", 1_000_001), (first, "/c", 7), (&second.api_key, "/a/{b}", 73)] {
        block_on(charge(store.as_ref(), key, route, Credits::from_atoms(atoms), now));
    }
    (program, now)
}

#[test]
fn the_three_exports_add_up_to_the_atom() {
    let (program, at) = busy();
    let [accounts, ledger, usage] = ["accounts", "ledger", "usage"].map(|what| export(&program, what));
    assert_eq!((accounts.len(), ledger.len(), usage.len()), (2, 3, 3));
    for account in &accounts {
        let of_account = |rows: &[Row], column: &str| -> i64 {
            rows.iter().filter(|row| row["org_id"] == account["org_id"]).map(|row| atoms(row, column)).sum()
        };
        let (added, used) = (of_account(&ledger, "amount_atoms"), of_account(&usage, "credits_used_atoms"));
        assert_eq!(atoms(account, "credit_balance_atoms"), added - used);
        assert_eq!(atoms(account, "total_credits_granted_atoms"), added);
        assert_eq!(atoms(account, "total_credits_used_atoms"), used);
        assert_eq!(account["credit_balance"], Credits::from_atoms(added - used).to_string());
    }
    assert_eq!(atoms(&accounts[1], "credit_balance_atoms"), 72 - 73, "the last call may take the balance below zero");
    assert_eq!((ledger[2]["amount"].as_str(), atoms(&ledger[2], "amount_atoms")), ("-0.1", -ATOMS_PER_CREDIT / 10));
    let day = at.day().to_string();
    assert!(usage.iter().all(|row| row["day"] == day && row["client_source"] == "cli" && row["calls"] == "1"));
}

#[test]
fn json_lines_match_csv_whose_cells_are_never_formulas() {
    let (program, _) = busy();
    for what in ["accounts", "ledger", "usage"] {
        let csv = export(&program, what);
        let lines = program.run(&format!("export {what} --format jsonl")).success();
        assert_eq!(csv.len(), lines.lines().count());
        for (row, line) in csv.iter().zip(lines.lines()) {
            let object: BTreeMap<String, Box<RawValue>> = serde_json::from_str(line).unwrap();
            assert!(object.keys().eq(row.keys()), "{line}");
            for (name, raw) in &object {
                let cell = row[name].as_str();
                let digits = cell.strip_prefix('-').unwrap_or(cell);
                let number = digits.starts_with(|c: char| c.is_ascii_digit())
                    && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
                assert!(number || !cell.starts_with(['=', '+', '-', '@']), "{name}: {cell}");
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
    let account = &export(&program, "accounts")[0];
    assert_eq!((account["agent_name"].as_str(), account["email"].as_str()), ("'-agent", "'=cmd|calc@example.com"));
    assert_eq!(export(&program, "ledger")[2]["description"], "'+SUM(A1), \"quoted\"");
}

#[test]
fn export_writes_to_a_new_file() {
    let (program, _) = busy();
    let printed = program.run("export ledger").success();
    let before = program.files();
    let said = program.run("export ledger --output ledger.csv").success();
    assert!(said.starts_with(&format!("Wrote {} rows, ", printed.lines().count() - 1)), "{said}");
    assert!(said.ends_with(", to ledger.csv.\n"), "{said}");
    assert_eq!(program.read("ledger.csv"), printed);
    assert_eq!(mode(&program.path("ledger.csv")), 0o600, "readable by its owner only");
    program.refuses(&[
        ("export ledger --output ledger.csv", 5, "--force"),
        ("export ledger --output missing/ledger.csv", 1, ""),
        ("export everything", 2, "everything"),
        ("export ledger --format xml", 2, "xml"),
        ("export ledger --with-hashes", 2, "export accounts"),
    ]);
    program.write("ledger.csv", "old");
    program.run("export ledger --output ledger.csv --force").success();
    assert_eq!(program.read("ledger.csv"), printed);
    assert_eq!(program.run("export ledger --output -").success(), printed);
    assert_eq!(program.files(), before + 1);
}

#[test]
fn empty_export_has_only_headings() {
    let program = Program::without_store();
    program.reading("plan import -", "[]").success();
    assert_eq!(program.run("export ledger").success(), LEDGER_HEADINGS);
    assert_eq!(program.run("export payments").success().lines().count(), 1);
    assert_eq!(program.run("export ledger --format jsonl").success(), "");
}

#[test]
fn every_page_of_a_long_list_is_exported_once() {
    let program = Program::without_store();
    let account = program.create("a", "1000");
    let store = program.store();
    block_on(async {
        for day in 10_000..12_500 {
            let at = Day::from_unix_days(day).start();
            charge(store.as_ref(), &account.api_key, "/a", Credits::BASE_CALL, at).await;
        }
        store.check().await.unwrap();
    });
    let usage = export(&program, "usage");
    assert_eq!(usage.len(), 2_500);
    assert!(usage.windows(2).all(|pair| pair[0]["day"] < pair[1]["day"]));
    assert_eq!(usage.iter().map(|row| atoms(row, "credits_used_atoms")).sum::<i64>(), 2_500 * 1_000_000);
}

/// An account with usage on four days, the last of which is today; and today.
fn four_days() -> (Program, Day) {
    let program = Program::without_store();
    let account = program.create("a", "1000");
    let (store, now) = (program.store(), now());
    block_on(async {
        for days_ago in [40, 2, 1, 0] {
            let at = now.saturating_sub(Duration::from_secs(days_ago * 86_400));
            charge(store.as_ref(), &account.api_key, "/a", Credits::from_atoms(1_000_001), at).await;
        }
    });
    (program, now.day())
}

#[test]
fn usage_is_exported_by_its_days() {
    let (program, today) = four_days();
    let days = |options: &str| -> Vec<String> {
        export(&program, &format!("usage {options}")).into_iter().map(|row| row["day"].clone()).collect()
    };
    let [first, before, yesterday] = [40, 2, 1].map(|days| today.minus_days(days).to_string());
    assert_eq!(days("").len(), 4);
    assert_eq!(days(&format!("--from {before} --to {yesterday}")), [before.clone(), yesterday.clone()]);
    assert_eq!(days(&format!("--to {before}")), [first, before.clone()]);
    assert_eq!(days(&format!("--from {today}")), [today.to_string()]);
    let swapped = format!("export usage --from {yesterday} --to {before}");
    let of_ledger = format!("export ledger --from {before}");
    program.refuses(&[
        (swapped.as_str(), 2, "is after"),
        ("export usage --from yesterday", 2, "2026-11-21"),
        (of_ledger.as_str(), 2, "export usage"),
        ("export ledger --incremental .", 2, "export usage"),
        ("export usage --incremental missing", 2, "create it first"),
    ]);
}

#[test]
fn whole_days_are_added_to_and_replaced_when_they_change() {
    let (program, today) = four_days();
    let files = tempfile::tempdir().unwrap();
    let run = format!("export usage --incremental {}", files.path().display());
    let name = |days: u32| files.path().join(format!("usage-{}.csv", today.minus_days(days)));
    let said = program.run(&run).success();
    assert!(said.ends_with(": 3 new, 0 replaced, 0 unchanged.\n"), "{said}");
    assert!([40, 2, 1].iter().all(|days| name(*days).exists()) && !name(0).exists());
    let text = std::fs::read_to_string(name(1)).unwrap();
    assert_eq!((text.lines().count(), text.starts_with("org_id,day,")), (2, true));

    // What is older than the days that are compared stays as it is.
    std::fs::write(name(40), "kept").unwrap();
    std::fs::remove_file(name(2)).unwrap();
    std::fs::write(name(1), &text.as_bytes()[1..]).unwrap();
    let said = program.run(&run).success();
    assert!(said.ends_with(": 1 new, 1 replaced, 1 unchanged.\n"), "{said}");
    assert_eq!(std::fs::read_to_string(name(1)).unwrap(), text);
    assert_eq!(std::fs::read_to_string(name(40)).unwrap(), "kept");
    let said = program.run(&run).success();
    assert!(said.ends_with(": 0 new, 0 replaced, 3 unchanged.\n"), "{said}");
}

/// By the standard library of Python: amounts are exact as text, and atoms as integers.
#[test]
fn python_reads_the_exact_amounts() {
    if skipped::by("TESTS_SKIP_CLIENTS") {
        return;
    }
    const READ: &str = "import csv, gzip, json, sys
from decimal import Decimal
with gzip.open(sys.argv[1], 'rt', newline='') as file: rows = list(csv.DictReader(file))
with gzip.open(sys.argv[2], 'rt') as file: lines = [json.loads(line, parse_float=Decimal) for line in file]
assert [int(row['credits_used_atoms']) for row in rows] == [line['credits_used_atoms'] for line in lines]
for row, line in zip(rows, lines):
    exact = Decimal(row['credits_used_atoms']) / 7200000000
    assert Decimal(row['credits_used']) == line['credits_used'] == round(exact, 10), row
print(sum(int(row['credits_used_atoms']) for row in rows), sum(int(row['calls']) for row in rows))";
    let (program, _) = four_days();
    let [csv, lines] = ["csv", "jsonl"].map(|format| {
        program.run(&format!("export usage --format {format} --gzip --output usage.{format}.gz")).success();
        program.path(&format!("usage.{format}.gz"))
    });
    let python = venv::program("clients-venv", "python");
    let read = Command::new(python).args(["-c", READ]).arg(csv).arg(lines).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&read.stdout).trim(), "4000004 4", "{read:?}");
}
