//! The `accounts` format, as CSV and JSON.

use metering_core::{ApiKey, Credits, Decision};

use super::{exported, import, oddities, report, write};
use crate::fixture::{Fixture, block_on, charge, now};

const OLD_KEY: &str = "sk_live_\
    00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn hash_of(key: &str) -> String {
    hex::encode(ApiKey::parse(key).unwrap().hash().as_bytes())
}

#[test]
fn csv_by_hand_is_imported_and_its_key_charges() {
    let fixture = Fixture::new();
    let hash = hash_of(OLD_KEY);
    let rows = format!(
        "agent_name,email,credit_balance,total_credits_used,requests_per_minute,created_at,key_hash,hash_kind\n\
         mover,jo@example.com,12.5,2.25,60,2025-03-04 05:06:07,{hash},sha256\n"
    );
    write(&fixture, "accounts.csv", &rows);
    let found = report(&fixture, "accounts.csv", "accounts");
    let counts = ["accounts", "created", "equal", "unequal", "refused"].map(|name| found[name].as_u64().unwrap());
    assert_eq!((counts, oddities(&found)), ([1, 1, 1, 0, 0], vec![]));
    let store = fixture.store();
    let charged = charge(store.as_ref(), OLD_KEY, "/a", "0.5".parse().unwrap(), now());
    assert!(matches!(block_on(charged), Decision::Accepted(_)));
    drop(store);
    // Imported again after it was used: nothing changes.
    let again = report(&fixture, "accounts.csv", "accounts");
    assert_eq!((again["created"].as_u64(), again["already_there"].as_u64()), (Some(0), Some(1)));
    assert_eq!((again["changed_since"].as_u64(), oddities(&again)), (Some(1), vec!["changed_since"]));
    let list: serde_json::Value = fixture.json(&["account", "list"]);
    let account = &list["accounts"][0];
    assert_eq!((&account["agent_name"], &account["credit_balance"]), (&"mover".into(), &12.into()));
}

#[test]
fn what_is_exported_is_imported_equal() {
    let fixture = Fixture::new();
    let [first, second] = [("a", "12.00000001"), ("b", "0")].map(|(name, credits)| fixture.create(name, credits));
    let made = ["key", "create", &first.org_id, "--name", "helper", "--limit", "3", "--route", "/a"];
    fixture.admin(&made).success();
    fixture.admin(&["account", "revoke", &second.org_id, "--yes"]).success();
    block_on(charge(fixture.store().as_ref(), &first.api_key, "/a", Credits::from_atoms(7), now()));
    let moved = exported(&fixture);
    assert!(moved.contains("\"helper\"") && moved.contains(&hash_of(&first.api_key)), "{moved}");
    for format in ["jsonl", "csv"] {
        let args = ["export", "accounts", "--with-hashes", "--format", format];
        let target = Fixture::new();
        write(&target, "file", &fixture.admin(&args).success().stdout);
        let found = report(&target, "file", "accounts");
        assert_eq!((found["equal"].as_u64(), found["created"].as_u64()), (Some(2), Some(2)), "{found}");
        assert_eq!(exported(&target), moved, "{format}");
        target.admin(&["verify"]).success();
        let store = target.store();
        let charged = charge(store.as_ref(), &first.api_key, "/a", "0.5".parse().unwrap(), now());
        assert!(matches!(block_on(charged), Decision::Accepted(_)), "our own keys go on working too");
    }
}

#[test]
fn a_record_that_is_wrong_is_named_and_the_others_are_imported() {
    let fixture = Fixture::new();
    let hash = |number: u8| hex::encode([number; 32]);
    let good = |number: u8| {
        format!(
            r#"{{"agent_name":"a{number}","credit_balance":1.5,"key_hash":"{}","hash_kind":"sha256"}}"#,
            hash(number)
        )
    };
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
    write(&fixture, "file", &format!("{first}\n\n{}\n", lines.join("\n")));
    let run = import(&fixture, "file", "accounts", &["--json"]);
    assert_eq!(run.code, 3, "{run:?}");
    let found: serde_json::Value = run.json();
    assert_eq!((found["created"].as_u64(), found["refused"].as_u64()), (Some(1), Some(12)), "{found}");
    for ((_, expected), oddity) in table.iter().zip(found["oddities"].as_array().unwrap()) {
        assert!(oddity["detail"].as_str().unwrap().contains(expected), "{expected}: {oddity}");
    }
}

/// The second one's balance must not be taken for imported, in the first run or in a later one.
#[test]
fn two_records_with_one_key_hash_are_not_merged() {
    let fixture = Fixture::new();
    let record = |name: &str, balance: &str| {
        let hash = hex::encode([7_u8; 32]);
        format!(r#"{{"agent_name":"{name}","credit_balance":{balance},"key_hash":"{hash}","hash_kind":"sha256"}}"#)
    };
    write(&fixture, "file", &format!("{}\n{}\n", record("one", "1.5"), record("two", "40")));
    for (created, already_there) in [(1, 0), (0, 1)] {
        let run = import(&fixture, "file", "accounts", &["--json"]);
        let found: serde_json::Value = run.json();
        let counts = ["created", "already_there", "refused"].map(|name| found[name].as_u64().unwrap());
        assert_eq!((run.code, counts), (3, [created, already_there, 1]), "{found}");
        assert!(oddities(&found).contains(&"duplicate_id"), "{found}");
    }
}

#[test]
fn files_that_are_none_are_refused_before_a_store_is_made() {
    let fixture = Fixture::new();
    // contents, what is said
    let table = [
        ("", "is empty"),
        ("agent_name,colour\na,b\n", "the column \"colour\" is not known"),
        ("agent_name,agent_name\na,b\n", "the column agent_name occurs twice"),
        ("[{]", "is no JSON array"),
    ];
    for (text, expected) in table {
        write(&fixture, "file", text);
        let message = import(&fixture, "file", "accounts", &[]).failure(1);
        assert!(message.contains(expected), "{text}: {message}");
    }
    assert!(import(&fixture, "none", "accounts", &[]).failure(1).contains("cannot read none"));
    let long = format!("{{\"agent_name\":\"{}\"}}\n", "a".repeat(5 << 20));
    write(&fixture, "file", &long);
    assert!(import(&fixture, "file", "accounts", &["--dry-run"]).failure(1).contains("more than 4 MiB"));
    assert!(!fixture.database().exists());
    assert!(fixture.admin(&["export", "ledger", "--with-hashes"]).misuse().contains("export accounts"));
}
