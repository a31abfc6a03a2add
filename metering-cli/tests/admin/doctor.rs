//! What is wrong is found and explained; nothing is changed.

use serde_json::Value;

use crate::fixture::Fixture;
use crate::node::{Chain, Node, SECRET, address};

/// The findings of a run, as `(check, state, found)`.
fn findings(document: &Value) -> Vec<(String, String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let all = document["findings"].as_array().unwrap();
    all.iter().map(|finding| (text(finding, "check"), text(finding, "state"), text(finding, "found"))).collect()
}

/// Runs the doctor with this configuration, and returns its exit code and findings.
fn examine(fixture: &Fixture, configuration: &str) -> (i32, Vec<(String, String, String)>) {
    let file = fixture.path("metering.toml");
    std::fs::write(&file, configuration).unwrap();
    let mut run = fixture.command(&["admin", "--config", "metering.toml", "doctor", "--json"]);
    let output = run.output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), findings(&document))
}

fn states_of<'f>(findings: &'f [(String, String, String)], name: &str) -> Vec<(&'f str, &'f str)> {
    let of_check = findings.iter().filter(|(check, ..)| check == name);
    of_check.map(|(_, state, found)| (state.as_str(), found.as_str())).collect()
}

#[test]
fn sound_installation_has_no_warnings() {
    let fixture = Fixture::new();
    let _ = fixture.create("agent", "2");
    let (code, found) = examine(&fixture, "");
    let bad: Vec<_> = found.iter().filter(|(check, state, _)| check != "disk" && state != "ok").collect();
    assert_eq!((code, bad), (0, vec![]), "{found:?}");
    assert_eq!(states_of(&found, "store").len(), 1, "{found:?}");
    let text = fixture.admin(&["doctor", "--offline"]).success().stdout;
    assert!(text.contains("ok       store: sqlite:"), "{text}");
}

#[test]
fn unusable_configuration_and_catalogue_are_explained() {
    let fixture = Fixture::new();
    let (code, found) = examine(&fixture, "[http]\nmax_body_bites = 1");
    assert_eq!((code, found.len()), (1, 1), "{found:?}");
    assert!(found[0].2.contains("http.max_body_bites"), "{found:?}");

    std::fs::write(fixture.path("routes.json"), "{}").unwrap();
    let (code, found) = examine(&fixture, "catalogue = 'routes.json'");
    assert_eq!((code, states_of(&found, "catalogue")[0].0), (1, "problem"), "{found:?}");
    let misuse = fixture.admin(&["doctor", "--server", "http://127.0.0.1:9"]).misuse();
    assert!(misuse.contains("--config"), "{misuse}");
}

#[test]
fn store_of_a_newer_version_and_damaged_file_are_problems() {
    let fixture = Fixture::new();
    let _ = fixture.create("agent", "2");
    let set_version = |version: i64| {
        let file = rusqlite::Connection::open(fixture.database()).unwrap();
        file.pragma_update(None, "user_version", version).unwrap();
    };
    set_version(1_000);
    let (code, found) = examine(&fixture, "");
    let store = states_of(&found, "store");
    assert!(code == 1 && store[0].0 == "problem" && store[0].1.contains("schema 1000"), "{found:?}");

    set_version(3);
    let (code, found) = examine(&fixture, "");
    let store = states_of(&found, "store");
    assert!(code == 0 && store == [("warning", store[0].1)] && store[0].1.contains("migrates it"), "{found:?}");
    let file = rusqlite::Connection::open(fixture.database()).unwrap();
    let version: i64 = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 3, "it was not migrated");
    drop(file);

    std::fs::write(fixture.database(), "not a database, and long enough to be read as one of its pages").unwrap();
    let (code, found) = examine(&fixture, "");
    assert_eq!((code, states_of(&found, "store")[0].0), (1, "problem"), "{found:?}");
}

#[cfg(unix)]
#[test]
fn secrets_that_everyone_can_read_are_noticed_and_not_printed() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    let fixture = Fixture::new();
    let secret = "a secret of thirty characters!";
    let configuration = format!("[billing]\ninternal_secret = '{secret}'");
    std::fs::write(fixture.path("metering.toml"), "").unwrap();
    for (mode, states) in [(0o644, &["warning", "ok"][..]), (0o600, &["ok"])] {
        set_permissions(fixture.path("metering.toml"), Permissions::from_mode(mode)).unwrap();
        let (_, found) = examine(&fixture, &configuration);
        let permissions = states_of(&found, "permissions");
        assert_eq!(permissions.iter().map(|(state, _)| *state).collect::<Vec<_>>(), states, "{found:?}");
        assert!(!format!("{found:?}").contains(secret));
    }
    let (code, found) = examine(&fixture, "[pay]\nmpp_secret_file = 'none'");
    let permissions = states_of(&found, "permissions");
    assert!(code == 1 && permissions[0].1.starts_with("none: "), "{found:?}");
}

#[test]
fn chains_that_are_unreachable_wrong_or_standing_still_are_noticed() {
    let fixture = Fixture::new();
    let section = |urls: &str| {
        format!("[chains.base]\nchain_id = 8453\nrecipient = '{}'\nrpc_urls = [{urls}]\nattempts = 1", address(7))
    };
    let (code, found) = examine(&fixture, &section("'http://127.0.0.1:9'"));
    assert!(code == 1 && states_of(&found, "chain")[0].1.contains("127.0.0.1:9"), "{found:?}");

    let serve = |id: u64| Node::start(Chain { id, newest: 500, transactions: Vec::new(), takes: None });
    let wrong = serve(1);
    let (code, found) = examine(&fixture, &section(&format!("'{}'", wrong.url())));
    assert_eq!((code, states_of(&found, "chain")[0].0), (1, "problem"), "{found:?}");

    // Its newest block is from long ago.
    let old = serve(8453);
    let (code, found) = examine(&fixture, &section(&format!("'{}'", old.url())));
    let chain = states_of(&found, "chain");
    assert!(code == 1 && chain[0].1.contains("block, 500, is "), "{found:?}");
    let (_, found) = examine(&fixture, &section(""));
    assert_eq!(states_of(&found, "chain")[0].0, "warning", "{found:?}");

    // One that takes less at once than the server sends is named by its host.
    let limited = Node::start(Chain { id: 8453, newest: 5_000, transactions: Vec::new(), takes: Some((3, 700)) });
    let (_, found) = examine(&fixture, &section(&format!("'{}'", limited.url())));
    let chain = states_of(&found, "chain");
    let warned = |words: &str| chain.iter().any(|(state, found)| *state == "warning" && found.contains(words));
    assert!(warned("blocks in one search for logs") && warned("batches of 2 calls at most"), "{found:?}");
    let host = limited.url().trim_start_matches("http://").split_once('/').unwrap().0.to_owned();
    assert!(chain.iter().all(|(_, found)| found.contains(&host) && !found.contains(SECRET)), "{found:?}");
}

#[test]
fn proof_of_payers_is_named_where_accounts_were_imported() {
    let fixture = Fixture::new();
    let _ = fixture.create("agent", "2");
    assert_eq!(states_of(&examine(&fixture, "").1, "topup"), [], "nothing was imported");
    let hash = "ab".repeat(32);
    let account = format!(
        r#"{{"agent_name":"moved","key_hash":"{hash}","hash_kind":"sha256","credit_balance":1,"total_credits_granted":1}}"#
    );
    std::fs::write(fixture.path("accounts.jsonl"), account).unwrap();
    fixture.admin(&["import", "--from", "accounts.jsonl", "--format", "accounts"]).success();
    for (configuration, state) in [("", "ok"), ("[topup]\nrequire_payer_proof = false", "warning")] {
        let (_, found) = examine(&fixture, configuration);
        let of_topup = states_of(&found, "topup");
        assert_eq!(of_topup.iter().map(|(state, _)| *state).collect::<Vec<_>>(), [state], "{found:?}");
        assert!(of_topup[0].1.contains("topup.require_payer_proof"), "{found:?}");
    }
}
