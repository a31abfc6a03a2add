//! Accounts: created, shown, changed and revoked.

use metering_core::charging::LimitWindow;
use metering_core::{ApiKey, Credits, Decision, Refusal, Store};
use metering_sqlite::SqliteStore;
use serde::Deserialize;
use serde_json::Value;

use crate::fixture::{Fixture, UNKNOWN_ACCOUNT, block_on, charge, now};

/// Exact amounts are read through the exact type.
#[derive(Debug, Deserialize)]
struct Money {
    credit_balance: Credits,
    total_credits_granted: Credits,
    total_credits_used: Credits,
}

fn accepted(decision: &Decision) -> bool {
    matches!(decision, Decision::Accepted(_))
}

#[test]
fn create_prints_three_fields_of_an_account_that_can_be_charged() {
    let fixture = Fixture::new();
    let ran =
        fixture.admin(&["account", "create", "--agent-name", "my-agent", "--credits", "10.5", "--json"]).success();
    let account: Value = ran.json();
    let names: Vec<_> = account.as_object().unwrap().keys().collect();
    assert_eq!(names, ["api_key", "credit_balance", "org_id"]);
    assert!(ran.stdout.contains("\"credit_balance\":10.5}"), "{}", ran.stdout);
    let key = account["api_key"].as_str().unwrap();
    let decision = block_on(charge(fixture.store().as_ref(), key, "/a", Credits::BASE_CALL, now()));
    let Decision::Accepted(receipt) = decision else { panic!("{decision:?}") };
    assert_eq!(receipt.account.as_str(), account["org_id"].as_str().unwrap());
    assert_eq!(receipt.balance.atoms(), 10 * 7_200_000_000 + 3_600_000_000 - 1_000_000);
}

#[test]
fn the_key_is_shown_once_and_never_again() {
    let fixture = Fixture::new();
    let shown = fixture.admin(&["account", "create", "--agent-name", "a", "--credits", "1"]).success().stdout;
    assert!(shown.contains("shown only once"), "{shown}");
    let key = shown.split_whitespace().find(|word| word.starts_with("sk_live_")).unwrap();
    assert!(ApiKey::parse(key).is_ok());
    let org = shown.split_whitespace().find(|word| word.starts_with("org_")).unwrap();
    for later in [
        &["account", "list", "--json"][..],
        &["account", "show", org],
        &["account", "grant", org, "--credits", "1", "--json"],
        &["export", "accounts"],
        &["export", "ledger"],
    ] {
        let ran = fixture.admin(later).success();
        assert!(!ran.stdout.contains("sk_live_"), "{later:?}: {}", ran.stdout);
    }
    let database = std::fs::read(fixture.database()).unwrap();
    assert!(!database.windows(key.len()).any(|window| window == key.as_bytes()), "the key itself is stored");
}

#[test]
fn new_account_has_the_default_or_the_given_caps() {
    let fixture = Fixture::new();
    // options, per minute, per day
    let table: [(&[&str], u64, u64); 4] = [
        (&[], 240, 1_500_000),
        (&["--rpm", "0"], 0, 1_500_000),
        (&["--rpd", "9"], 240, 9),
        (&["--rpm", "4294967295", "--rpd", "0"], 4_294_967_295, 0),
    ];
    for (options, per_minute, per_day) in table {
        let created: Value = fixture.json(&[&["account", "create", "--agent-name", "a"], options].concat());
        let account: Value = fixture.json(&["account", "show", created["org_id"].as_str().unwrap()]);
        assert_eq!(account["rate_limits"]["requests_per_minute"], per_minute, "{options:?}");
        assert_eq!(account["rate_limits"]["requests_per_day"], per_day, "{options:?}");
    }
}

#[test]
fn amounts_that_no_float_can_hold_stay_exact() {
    let fixture = Fixture::new();
    for text in ["123456789.12345678", "1281023894.00760775", "0.00000001", "0"] {
        let ran = fixture.admin(&["account", "create", "--agent-name", "a", "--credits", text, "--json"]).success();
        assert!(ran.stdout.contains(&format!("\"credit_balance\":{text}}}")), "{}", ran.stdout);
        let created: Value = ran.json();
        let money: Money = fixture.json(&["account", "show", created["org_id"].as_str().unwrap()]);
        let exact: Credits = text.parse().unwrap();
        assert_eq!((money.credit_balance, money.total_credits_granted), (exact, exact));
        assert_eq!(money.total_credits_used, Credits::ZERO);
    }
    fixture.admin(&["verify"]).success();
}

#[test]
fn invalid_account_arguments_create_no_store() {
    let fixture = Fixture::new();
    // options, what the message contains
    let table: [(&[&str], &str); 9] = [
        (&[], "--agent-name"),
        (&["--agent-name", "a b"], "1 to 64 letters"),
        (&["--agent-name", "a", "--credits", "-1"], "must not be negative"),
        (&["--agent-name", "a", "--credits", "0.000000001"], "too many decimal places"),
        (&["--agent-name", "a", "--credits", "1e400"], "out of range"),
        (&["--agent-name", "a", "--credits", "1281023895"], "out of range"),
        (&["--agent-name", "a", "--credits", "1,5"], "not a decimal number"),
        (&["--agent-name", "a", "--email", "nobody"], "email address"),
        (&["--agent-name", "a", "--rpm=-1"], "--rpm"),
    ];
    for (options, expected) in table {
        let message = fixture.admin(&[&["account", "create"], options].concat()).misuse();
        assert!(message.contains(expected), "{options:?}: {message}");
    }
    assert_eq!(fixture.files(), 0);
}

#[test]
fn email_has_one_account_until_it_is_revoked() {
    let fixture = Fixture::new();
    let create = |email: &str| fixture.admin(&["account", "create", "--agent-name", "a", "--email", email, "--json"]);
    let first: Value = create("Ops@Example.com").success().json();
    let first = first["org_id"].as_str().unwrap();
    let message = create("ops@example.COM").failure(5);
    assert!(message.contains("ops@example.COM"), "{message}");
    let shown: Value = fixture.json(&["account", "show", "--email", "OPS@example.com"]);
    assert_eq!(shown["org_id"], first);
    fixture.admin(&["account", "revoke", first, "--yes"]).success();
    fixture.admin(&["account", "show", "--email", "ops@example.com"]).failure(4);
    let second: Value = create("ops@example.com").success().json();
    assert_ne!(second["org_id"], first);
}

#[test]
fn list_shows_every_account_of_every_page() {
    let fixture = Fixture::new();
    fixture.create("first", "2.5");
    // More than one page, written at once so that the test does not wait for a thousand commits.
    let rows = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 2345)";
    let connection = rusqlite::Connection::open(fixture.database()).unwrap();
    connection
        .execute_batch(&format!(
            "BEGIN;
             INSERT INTO account (id, org_id, agent_name, created_at)
               {rows} SELECT i, printf('org_%020d', i), 'agent-' || i, 1795248000005 FROM n;
             INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day)
               SELECT id, 0, 0, 0, 0, 240, 0 FROM account WHERE id > 1;
             COMMIT;"
        ))
        .unwrap();
    drop(connection);
    let list: Value = fixture.json(&["account", "list"]);
    let accounts = list["accounts"].as_array().unwrap();
    assert_eq!(accounts.len(), 2345);
    assert_eq!((&accounts[0]["agent_name"], &accounts[2344]["agent_name"]), (&"first".into(), &"agent-2345".into()));
    assert_eq!(accounts[2344]["created_at"], "2026-11-21T08:00:00.005Z");
    let table = fixture.admin(&["account", "list"]).success().stdout;
    assert_eq!(table.lines().count(), 1 + 2345);
    let (heading, row) = (table.lines().next().unwrap(), table.lines().nth(1).unwrap());
    assert_eq!(heading.find("BALANCE").unwrap() + "BALANCE".len(), row.find("2.5").unwrap() + "2.5".len());
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(fixture.admin(&["export", "accounts"]).success().stdout.lines().count(), 1 + 2345);
    assert_eq!(fixture.json::<Value>(&["usage"])["accounts"].as_array().unwrap().len(), 2345);
}

#[test]
fn limits_change_only_given_fields_and_take_effect_immediately() {
    let fixture = Fixture::new();
    let account = fixture.create("a", "1");
    let store = fixture.store();
    let one_call = || block_on(charge(store.as_ref(), &account.api_key, "/a", Credits::BASE_CALL, now()));
    assert!(accepted(&one_call()));
    let changed: Value = fixture.json(&["account", "limits", &account.org_id, "--rpd", "1"]);
    assert_eq!(changed["rate_limits"]["requests_per_minute"], 240);
    assert_eq!(changed["rate_limits"]["requests_per_day"], 1);
    let refused = one_call();
    let of_the_day = |refusal: &Refusal| matches!(refusal, Refusal::RateLimited { window: LimitWindow::Day, .. });
    assert!(matches!(&refused, Decision::Refused(refusal) if of_the_day(refusal)), "{refused:?}");
    let shown = fixture.admin(&["account", "limits", &account.org_id, "--rpm", "0", "--rpd", "0"]).success().stdout;
    assert!(shown.contains("no limit"), "{shown}");
    assert!(accepted(&one_call()));
    fixture.admin(&["account", "limits", &account.org_id]).misuse();
}

#[test]
fn grants_and_adjustments_change_the_balance_and_the_ledger() {
    let fixture = Fixture::new();
    let org = fixture.create("a", "1").org_id;
    let granted: Money = fixture.json(&["account", "grant", &org, "--credits", "24.00000001", "--note", "Beta"]);
    assert_eq!(granted.credit_balance, "25.00000001".parse().unwrap());
    let adjusted: Money = fixture.json(&["account", "adjust", &org, "--credits=-30", "--note", "Typo"]);
    assert_eq!(adjusted.credit_balance, "-4.99999999".parse().unwrap());
    assert_eq!(adjusted.total_credits_granted, adjusted.credit_balance);
    let text = fixture.admin(&["account", "grant", &org, "--credits", "1"]).success().stdout;
    assert!(text.starts_with("Posted 1 credits to the ledger"), "{text}");
    let ledger = fixture.admin(&["export", "ledger"]).success().stdout;
    let notes: Vec<_> = ledger.lines().skip(1).map(|line| line.split(',').nth(5).unwrap()).collect();
    assert_eq!(notes, ["Initial credits", "Beta", "Typo", "Granted by the operator"]);
    assert!(fixture.admin(&["verify"]).success().stdout.contains("exactly"));
}

#[test]
fn invalid_amounts_and_notes_are_rejected() {
    let fixture = Fixture::new();
    let org = fixture.create("a", "1").org_id;
    let table: [(&[&str], &str); 7] = [
        (&["grant", &org, "--credits", "0"], "above zero"),
        (&["grant", &org, "--credits", "-5"], "above zero"),
        (&["grant", &org], "--credits"),
        (&["adjust", &org, "--credits=-5"], "--note"),
        (&["adjust", &org, "--credits", "0", "--note", "x"], "must not be zero"),
        (&["adjust", &org, "--credits", "1", "--note", "  "], "one line"),
        (&["grant", &org, "--credits", "0.0000000001"], "too many decimal places"),
    ];
    for (args, expected) in table {
        let message = fixture.admin(&[&["account"], args].concat()).misuse();
        assert!(message.contains(expected), "{args:?}: {message}");
    }
    let message = fixture.admin(&["account", "grant", &org, "--credits", "1281023894"]).failure(1);
    assert!(message.contains("out of range"), "{message}");
    assert_eq!(fixture.json::<Money>(&["account", "show", &org]).credit_balance, "1".parse().unwrap());
}

#[test]
fn revoking_needs_confirmation_and_ends_the_key_immediately() {
    let fixture = Fixture::new();
    let account = fixture.create("a", "1");
    let org = account.org_id.as_str();
    let store = fixture.store();
    let one_call = || block_on(charge(store.as_ref(), &account.api_key, "/a", Credits::BASE_CALL, now()));
    let message = fixture.admin(&["account", "revoke", org]).failure(2);
    assert!(message.contains("--yes"), "{message}");
    assert!(accepted(&one_call()), "nothing was revoked");
    let revoked: Value = fixture.json(&["account", "revoke", org, "--yes"]);
    assert_eq!(revoked["status"], "revoked");
    assert_eq!(one_call(), Decision::Refused(Refusal::UnknownKey));
    let again: Value = fixture.json(&["account", "revoke", org]);
    assert_eq!(again["revoked_at"], revoked["revoked_at"], "a second time changes nothing");
    for change in [
        &["account", "grant", org, "--credits", "1"][..],
        &["account", "adjust", org, "--credits", "1", "--note", "x"],
        &["account", "rotate-key", org],
    ] {
        let message = fixture.admin(change).failure(5);
        assert!(message.contains("revoked"), "{message}");
    }
    assert!(fixture.admin(&["account", "list"]).success().stdout.contains("revoked"));
}

#[test]
fn rotated_key_replaces_the_old_one() {
    let fixture = Fixture::new();
    let account = fixture.create("a", "1");
    let store = fixture.store();
    let call = |key: &str| block_on(charge(store.as_ref(), key, "/a", Credits::BASE_CALL, now()));
    assert!(accepted(&call(&account.api_key)));
    let rotated: Value = fixture.json(&["account", "rotate-key", &account.org_id]);
    assert_eq!(rotated["org_id"], account.org_id.as_str());
    assert_eq!(call(&account.api_key), Decision::Refused(Refusal::UnknownKey));
    assert!(accepted(&call(rotated["api_key"].as_str().unwrap())));
    let shown = fixture.admin(&["account", "rotate-key", &account.org_id]).success().stdout;
    assert!(shown.contains("sk_live_") && shown.contains("shown only once"), "{shown}");
    assert_eq!(call(rotated["api_key"].as_str().unwrap()), Decision::Refused(Refusal::UnknownKey));
}

#[test]
fn key_that_could_not_be_printed_is_a_failure_with_advice() {
    let fixture = Fixture::new();
    let message = fixture.admin_unread(&["account", "create", "--agent-name", "a", "--credits", "1"]).failure(1);
    let org = message.split_whitespace().find(|word| word.starts_with("org_")).unwrap();
    assert!(message.contains(&format!("rotate-key {org}")), "{message}");
    assert!(!message.contains("sk_live_"), "{message}");
    let rotated: Value = fixture.json(&["account", "rotate-key", org]);
    let store = SqliteStore::open(&fixture.database()).unwrap();
    let hash = ApiKey::parse(rotated["api_key"].as_str().unwrap()).unwrap().hash();
    assert_eq!(block_on(store.account_by_key(&hash)).unwrap().unwrap().id.as_str(), org);
}

#[test]
fn an_account_that_does_not_exist_is_not_found() {
    let fixture = Fixture::new();
    fixture.create("a", "1");
    for args in [
        &["account", "show", UNKNOWN_ACCOUNT][..],
        &["account", "show", "--email", "nobody@example.com"],
        &["account", "limits", UNKNOWN_ACCOUNT, "--rpm", "1"],
        &["account", "grant", UNKNOWN_ACCOUNT, "--credits", "1"],
        &["account", "adjust", UNKNOWN_ACCOUNT, "--credits", "1", "--note", "x"],
        &["account", "revoke", UNKNOWN_ACCOUNT, "--yes"],
        &["account", "rotate-key", UNKNOWN_ACCOUNT],
        &["usage", UNKNOWN_ACCOUNT],
    ] {
        let message = fixture.admin(args).failure(4);
        assert!(message.contains("no account"), "{args:?}: {message}");
    }
    fixture.admin(&["account", "show", "somebody"]).misuse();
    fixture.admin(&["account", "show"]).misuse();
    fixture.admin(&["account", "show", UNKNOWN_ACCOUNT, "--email", "a@example.com"]).misuse();
}
