//! The `accounts` format, as CSV and JSON.

use metering_core::Credits;

use super::{counts, exported, hash_of, oddities, report};
use crate::admin::{charge, failed, now};
use crate::program::Program;
use crate::store::block_on;

const OLD_KEY: &str = "sk_live_\
    00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn record(name: &str, balance: &str, hash: &str) -> String {
    format!(r#"{{"agent_name":"{name}","credit_balance":{balance},"key_hash":"{hash}","hash_kind":"sha256"}}"#)
}

#[test]
fn csv_by_hand_is_imported_and_its_key_charges() {
    let program = Program::without_store();
    let rows = format!(
        "agent_name,email,credit_balance,total_credits_used,requests_per_minute,created_at,key_hash,hash_kind\n\
         mover,jo@example.com,12.5,2.25,60,2025-03-04 05:06:07,{},sha256\n",
        hash_of(OLD_KEY)
    );
    program.write("accounts.csv", &rows);
    let found = report(&program, "accounts.csv", "accounts");
    let numbers = counts(&found, ["accounts", "created", "equal", "unequal", "refused"]);
    assert_eq!((numbers, oddities(&found)), ([1, 1, 1, 0, 0], vec![]));
    assert!(program.works(OLD_KEY));
    // Imported again after it was used: nothing changes.
    let again = report(&program, "accounts.csv", "accounts");
    assert_eq!(counts(&again, ["created", "already_there", "changed_since"]), [0, 1, 1]);
    assert_eq!(oddities(&again), ["changed_since"]);
    let account = [("/accounts/0/agent_name", "\"mover\""), ("/accounts/0/credit_balance", "12.499")];
    program.documents(&[("account list", &account)]);
}

#[test]
fn what_is_exported_is_imported_equal() {
    let program = Program::without_store();
    let second = program.create("b", "0");
    program.run("account revoke $org --yes").success();
    assert!(!program.works(&second.api_key));
    let first = program.create("a", "12.00000001");
    program.run("key create $org --name helper --limit 3 --route /a").success();
    block_on(charge(program.store().as_ref(), &first.api_key, "/a", Credits::from_atoms(7), now()));
    let moved = exported(&program);
    assert!(moved.contains("\"helper\"") && moved.contains(&hash_of(&first.api_key)), "{moved}");
    for format in ["jsonl", "csv"] {
        let target = Program::without_store();
        target.write("file", program.run(&format!("export accounts --with-hashes --format {format}")).success());
        let found = report(&target, "file", "accounts");
        assert_eq!(counts(&found, ["equal", "created"]), [2, 2], "{found}");
        assert_eq!(exported(&target), moved, "{format}");
        target.run("verify").success();
        assert!(target.works(&first.api_key), "our own keys go on working too");
    }
}

#[test]
fn a_record_that_is_wrong_is_named_and_the_others_are_imported() {
    let program = Program::without_store();
    let hash = |number: u8| hex::encode([number; 32]);
    let good = |number: u8| record(&format!("a{number}"), "1.5", &hash(number));
    let with = |number: u8, from: &str, to: &str| good(number).replace(from, to);
    // record, what is reported of it
    let table = [
        (with(2, "1.5", "null"), "credit_balance_atoms is missing"),
        (with(3, "1.5", "1e400"), "credit_balance"),
        (with(4, "1.5", "1.5,\"total_credits_granted\":2"), "is not purchased + granted - used"),
        (with(5, "1.5", "1.5,\"total_credits_used\":-1"), "total_credits_used: must not be below zero"),
        (with(6, "sha256", "md5"), "hash_kind: must be sha3-256"),
        (with(7, "a7", "a 7"), "agent_name: must be 1 to 64"),
        (with(8, &hash(8), OLD_KEY), "key_hash: a key hash is 64 lower-case hex digits"),
        (with(9, "1.5", "1.5,\"balance\":3"), "the field balance is not known"),
        (with(10, "1.5", "1.5,\"status\":\"revoked\""), "revoked_at is missing"),
        (with(11, "1.5", "1.5,\"created_at\":\"soon\""), "created_at: is not a time"),
        ("{\"agent_name\"".to_owned(), "EOF"),
        (good(1), "its key hash belongs to"),
    ];
    let lines: Vec<&str> = table.iter().map(|(record, _)| record.as_str()).collect();
    let first = with(1, "\"a1\"", "\"first\",\"org_id\":\"org_aaaaaaaaaaaaaaaaaaaa\"");
    program.write("file", format!("{first}\n\n{}\n", lines.join("\n")));
    let found: serde_json::Value = program.run("import --from file --format accounts --json").expect(3).json();
    assert_eq!(counts(&found, ["created", "refused"]), [1, 12], "{found}");
    for ((_, expected), oddity) in table.iter().zip(found["oddities"].as_array().unwrap()) {
        assert!(oddity["detail"].as_str().unwrap().contains(expected), "{expected}: {oddity}");
    }
}

/// The second one's balance must not be taken for imported, in the first run or in a later one.
#[test]
fn two_records_with_one_key_hash_are_not_merged() {
    let program = Program::without_store();
    let hash = hex::encode([7_u8; 32]);
    program.write("file", format!("{}\n{}\n", record("one", "1.5", &hash), record("two", "40", &hash)));
    for (created, already_there) in [(1, 0), (0, 1)] {
        let found: serde_json::Value = program.run("import --from file --format accounts --json").expect(3).json();
        assert_eq!(counts(&found, ["created", "already_there", "refused"]), [created, already_there, 1], "{found}");
        assert!(oddities(&found).contains(&"duplicate_id"), "{found}");
    }
}

#[test]
fn files_that_are_none_are_refused_before_a_store_is_made() {
    let program = Program::without_store();
    // contents, message
    for (text, expected) in [
        ("", "is empty"),
        ("agent_name,colour\na,b\n", "the column \"colour\" is not known"),
        ("agent_name,agent_name\na,b\n", "the column agent_name occurs twice"),
        ("[{]", "is no JSON array"),
    ] {
        program.write("file", text);
        let message = failed(program.run("import --from file --format accounts"), 1);
        assert!(message.contains(expected), "{expected}: {message}");
    }
    program.write("file", record(&"a".repeat(5 << 20), "1", "x"));
    program.refuses(&[
        ("import --from file --format accounts --dry-run", 1, "more than 4 MiB"),
        ("import --from none --format accounts", 1, "cannot read none"),
        ("import --from none --format agenthub", 1, "cannot read none"),
    ]);
    assert!(!program.database().exists());
}
