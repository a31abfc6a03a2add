//! Accounts: created, shown, changed and revoked.

use metering_core::{ApiKey, Credits, Decision, Refusal, Store};
use serde_json::Value;

use super::failed;
use crate::program::Program;
use crate::store::block_on;

#[test]
fn create_prints_three_fields_of_an_account_that_can_be_charged() {
    let program = Program::without_store();
    let ran = program.run("account create --agent-name my-agent --credits 10.5 --json");
    let account: Value = ran.json();
    assert_eq!(account.as_object().unwrap().keys().collect::<Vec<_>>(), ["api_key", "credit_balance", "org_id"]);
    assert!(ran.success().contains("\"credit_balance\":10.5}"));
    let decision = program.charge(account["api_key"].as_str().unwrap(), "0.5");
    let Decision::Accepted(receipt) = decision else { panic!("{decision:?}") };
    assert_eq!(receipt.account.as_str(), account["org_id"].as_str().unwrap());
    assert_eq!(receipt.balance, Credits::from_whole(10).unwrap());
}

#[test]
fn the_key_is_shown_once_and_never_again() {
    let program = Program::without_store();
    let shown = program.run("account create --agent-name a --credits 1").success();
    assert!(shown.contains("shown only once"), "{shown}");
    let word = |start: &str| shown.split_whitespace().find(|word| word.starts_with(start)).unwrap();
    let key = word("sk_live_");
    assert!(ApiKey::parse(key).is_ok());
    program.call("org", word("org_"));
    for later in [
        "account list --json",
        "account show $org",
        "account grant $org --credits 1 --json",
        "export accounts",
        "export ledger",
    ] {
        assert!(!program.run(later).success().contains("sk_live_"), "{later}");
    }
    let database = std::fs::read(program.database()).unwrap();
    assert!(!database.windows(key.len()).any(|window| window == key.as_bytes()), "the key itself is stored");
}

#[test]
fn new_account_has_the_default_or_the_given_caps() {
    let program = Program::without_store();
    // options, per minute, per day
    for (options, per_minute, per_day) in [
        ("", "240", "1500000"),
        ("--rpm 0", "0", "1500000"),
        ("--rpd 9", "240", "9"),
        ("--rpm 4294967295 --rpd 0", "4294967295", "0"),
    ] {
        let created: Value = program.json(&format!("account create --agent-name a {options}"));
        program.call("org", created["org_id"].as_str().unwrap());
        let (minute, day) = ("/rate_limits/requests_per_minute", "/rate_limits/requests_per_day");
        program.documents(&[("account show $org", &[(minute, per_minute), (day, per_day)])]);
    }
}

#[test]
fn amounts_that_no_float_can_hold_stay_exact() {
    let program = Program::without_store();
    for text in ["123456789.12345678", "1281023894.00760775", "0.00000001", "0"] {
        let ran = program.run(&format!("account create --agent-name a --credits {text} --json"));
        assert!(ran.stdout.contains(&format!("\"credit_balance\":{text}}}")), "{ran:?}");
        program.call("org", ran.json::<Value>()["org_id"].as_str().unwrap());
        let [balance, granted] = ["credit_balance", "total_credits_granted"].map(|name| format!("\"{name}\":{text},"));
        program.prints(&[("account show $org --json", &[&balance, &granted, "\"total_credits_used\":0,"])]);
    }
    program.run("verify").success();
}

#[test]
fn invalid_account_arguments_create_no_store() {
    let program = Program::without_store();
    program.refuses(&[
        ("account create", 2, "--agent-name"),
        ("account create --agent-name 'a b'", 2, "1 to 64 letters"),
        ("account create --agent-name a --credits -1", 2, "must not be negative"),
        ("account create --agent-name a --credits 0.000000001", 2, "too many decimal places"),
        ("account create --agent-name a --credits 1e400", 2, "out of range"),
        ("account create --agent-name a --credits 1281023895", 2, "out of range"),
        ("account create --agent-name a --credits 1,5", 2, "not a decimal number"),
        ("account create --agent-name a --email nobody", 2, "email address"),
        ("account create --agent-name a --rpm=-1", 2, "--rpm"),
    ]);
    assert_eq!(program.files(), 0);
}

#[test]
fn email_has_one_account_until_it_is_revoked() {
    let program = Program::without_store();
    let create = |email: &str| program.run(&format!("account create --agent-name a --email {email} --json"));
    let first: Value = create("Ops@Example.com").json();
    program.call("org", first["org_id"].as_str().unwrap());
    assert!(failed(create("ops@example.COM"), 5).contains("ops@example.COM"));
    program.documents(&[("account show --email OPS@example.com", &[("/org_id", "\"$org\"")])]);
    program.run("account revoke $org --yes").success();
    program.refuses(&[("account show --email ops@example.com", 4, "no account")]);
    let second: Value = create("ops@example.com").json();
    assert_ne!(second["org_id"], first["org_id"]);
}

#[test]
fn list_shows_every_account_of_every_page() {
    let program = Program::without_store();
    program.create("first", "2.5");
    // More than one page, written at once so that the test does not wait for a thousand commits.
    let rows = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 2345)";
    let accounts = format!(
        "BEGIN;
         INSERT INTO account (id, org_id, agent_name, created_at)
           {rows} SELECT i, printf('org_%020d', i), 'agent-' || i, 1795248000005 FROM n;
         INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day)
           SELECT id, 0, 0, 0, 0, 240, 0 FROM account WHERE id > 1;
         COMMIT;"
    );
    rusqlite::Connection::open(program.database()).unwrap().execute_batch(&accounts).unwrap();
    let (first, last) = (("/accounts/0/agent_name", "\"first\""), ("/accounts/2344/agent_name", "\"agent-2345\""));
    let created = ("/accounts/2344/created_at", "\"2026-11-21T08:00:00.005Z\"");
    program.documents(&[("account list", &[first, last, created, ("/accounts/2345", "")])]);
    let table = program.run("account list").success();
    let (heading, row) = (table.lines().next().unwrap(), table.lines().nth(1).unwrap());
    assert_eq!(heading.find("BALANCE").unwrap() + "BALANCE".len(), row.find("2.5").unwrap() + "2.5".len());
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
    for lines in [table, program.run("export accounts").success()] {
        assert_eq!(lines.lines().count(), 1 + 2345);
    }
    assert_eq!(program.count("usage", "accounts"), 2345);
}

#[test]
fn limits_change_only_given_fields() {
    let (program, _) = Program::with_account();
    let (minute, day) = (("/rate_limits/requests_per_minute", "240"), ("/rate_limits/requests_per_day", "1"));
    program.documents(&[("account limits $org --rpd 1", &[minute, day])]);
    program.prints(&[("account limits $org --rpm 0 --rpd 0", &["no limit"])]);
    program.documents(&[("account limits $org --tpm 30000", &[("/tokens_per_minute", "30000"), (minute.0, "0")])]);
    program.refuses(&[("account limits $org", 2, "--rpm")]);
}

#[test]
fn grants_and_adjustments_change_the_balance_and_the_ledger() {
    let (program, _) = Program::with_account();
    program.documents(&[
        ("account grant $org --credits 24.00000001 --note Beta", &[("/credit_balance", "34.00000001")]),
        (
            "account adjust $org --credits=-39 --note Typo",
            &[("/credit_balance", "-4.99999999"), ("/total_credits_granted", "-4.99999999")],
        ),
    ]);
    let text = program.run("account grant $org --credits 1").success();
    assert!(text.starts_with("Posted 1 credits to the ledger"), "{text}");
    let ledger = program.run("export ledger").success();
    let notes: Vec<_> = ledger.lines().skip(1).map(|line| line.split(',').nth(5).unwrap()).collect();
    assert_eq!(notes, ["Initial credits", "Beta", "Typo", "Granted by the operator"]);
    program.prints(&[("verify", &["exactly"])]);
}

#[test]
fn invalid_amounts_and_notes_are_rejected() {
    let (program, _) = Program::with_account();
    program.refuses(&[
        ("account grant $org --credits 0", 2, "above zero"),
        ("account grant $org --credits -5", 2, "above zero"),
        ("account grant $org", 2, "--credits"),
        ("account adjust $org --credits=-5", 2, "--note"),
        ("account adjust $org --credits 0 --note x", 2, "must not be zero"),
        ("account adjust $org --credits 1 --note '  '", 2, "one line"),
        ("account grant $org --credits 0.0000000001", 2, "too many decimal places"),
        ("account grant $org --credits 1281023894", 1, "out of range"),
    ]);
    program.documents(&[("account show $org", &[("/credit_balance", "10")])]);
}

#[test]
fn revoking_needs_confirmation_and_ends_the_key_immediately() {
    let (program, account) = Program::with_account();
    program.refuses(&[("account revoke $org", 2, "--yes")]);
    assert!(program.works(&account.api_key), "nothing was revoked");
    let revoked: Value = program.json("account revoke $org --yes");
    assert_eq!(revoked["status"], "revoked");
    assert_eq!(program.charge(&account.api_key, "0.001"), Decision::Refused(Refusal::UnknownKey));
    let again: Value = program.json("account revoke $org");
    assert_eq!(again["revoked_at"], revoked["revoked_at"], "a second time changes nothing");
    program.refuses(&[
        ("account grant $org --credits 1", 5, "revoked"),
        ("account adjust $org --credits 1 --note x", 5, "revoked"),
        ("account rotate-key $org", 5, "revoked"),
        ("key create $org --name x", 5, "revoked"),
    ]);
    program.prints(&[("account list", &["revoked"])]);
}

#[test]
fn a_note_is_shown_with_its_account() {
    let (program, _) = Program::with_account();
    program.refuses(&[("account note $nobody 'Pays late'", 4, "no account")]);
    program.prints(&[
        ("account note $org 'Pays by transfer'", &["The note was written.", "Pays by transfer"]),
        ("account show $org", &["Pays by transfer", "command_line:"]),
    ]);
}

#[test]
fn an_erased_owner_leaves_only_postings() {
    let (program, account) = Program::with_account();
    program.refuses(&[("account erase $org", 2, "--yes"), ("account erase $nobody --yes", 4, "no account")]);
    program.prints(&[("account erase $org --dry-run", &["Nothing was changed", "profile"])]);
    assert!(program.works(&account.api_key), "nothing was erased");
    let erased: Value = program.json("account erase $org --yes --reason 'Asked for it'");
    assert_eq!(erased["account"]["agent_name"], "erased");
    assert_eq!(erased["account"]["status"], "revoked");
    assert_eq!(program.charge(&account.api_key, "0.001"), Decision::Refused(Refusal::UnknownKey));
    program.prints(&[("account erase $org", &["already erased"]), ("account show $org", &["owner erased at"])]);
    let log: Value = program.json("audit");
    assert_eq!(log["entries"][0]["action"], "account.erase");
    assert_eq!(log["entries"][0]["reason"], "Asked for it");
}

#[test]
fn rotated_key_replaces_the_old_one() {
    let (program, account) = Program::with_account();
    let rotated: Value = program.json("account rotate-key $org");
    assert_eq!(rotated["org_id"], account.org_id.as_str());
    let second = rotated["api_key"].as_str().unwrap();
    assert_eq!(program.charge(&account.api_key, "0.001"), Decision::Refused(Refusal::UnknownKey));
    assert!(program.works(second));
    program.prints(&[("account rotate-key $org", &["sk_live_", "shown only once"])]);
    assert!(!program.works(second));
}

#[test]
fn key_that_could_not_be_printed_is_a_failure_with_advice() {
    let program = Program::without_store();
    let message = failed(program.unread("account create --agent-name a --credits 1"), 1);
    let org = message.split_whitespace().find(|word| word.starts_with("org_")).unwrap();
    assert!(message.contains(&format!("rotate-key {org}")) && !message.contains("sk_live_"), "{message}");
    let rotated: Value = program.json(&format!("account rotate-key {org}"));
    let hash = ApiKey::parse(rotated["api_key"].as_str().unwrap()).unwrap().hash();
    assert_eq!(block_on(program.store().account_by_key(&hash)).unwrap().unwrap().id.as_str(), org);
}

#[test]
fn an_account_that_does_not_exist_is_not_found() {
    let (program, _) = Program::with_account();
    program.refuses(&[
        ("account show $nobody", 4, "no account"),
        ("account show --email nobody@example.com", 4, "no account"),
        ("account limits $nobody --rpm 1", 4, "no account"),
        ("account grant $nobody --credits 1", 4, "no account"),
        ("account adjust $nobody --credits 1 --note x", 4, "no account"),
        ("account revoke $nobody --yes", 4, "no account"),
        ("account rotate-key $nobody", 4, "no account"),
        ("account alert $nobody --below 1", 4, "no account"),
        ("usage $nobody", 4, "no account"),
        ("key list $nobody", 4, "no account"),
        ("key create $nobody --name x", 4, "no account"),
        ("request list $nobody", 4, "no account"),
        ("webhook list --account $nobody", 4, "no account"),
        ("webhook deliveries --account $nobody", 4, "no account"),
        ("account show somebody", 2, ""),
        ("account show", 2, ""),
        ("account show $nobody --email a@example.com", 2, ""),
    ]);
}
