//! Keys of an account: created, shown, changed, rotated and deleted. Their rules are tested in `metering-admin`.

use serde_json::Value;

use super::{Issued, failed};
use crate::program::Program;

/// An account `$org` with its first key, `$first`, and another one: `$key`, whose secret this is.
fn scene(terms: &str) -> (Program, Issued, String) {
    let (program, account) = Program::with_account();
    let made: Value = program.json(&format!("key create $org --name batch {terms}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    program.call("key", text(&made["data"]["id"]));
    program.call("first", text(&program.json::<Value>("key list $org")["data"][0]["id"]));
    program.call("unknown", "key_00000000000000000000");
    (program, account, text(&made["key"]))
}

/// What is shown of a secret.
fn hint(secret: &str) -> String {
    format!("sk_live_…{}", &secret[secret.len() - 4..])
}

/// The new secret of the key.
fn rotate(program: &Program, options: &str) -> String {
    let rotated: Value = program.json(&format!("key rotate $org $key {options}"));
    assert_eq!(rotated["data"]["id"], program.text("$key"), "it keeps its id");
    rotated["key"].as_str().unwrap().to_owned()
}

#[test]
fn a_new_key_can_be_used_and_its_secret_is_shown_once() {
    let (program, _, secret) = scene("--limit 1 --limit-reset monthly --scopes call");
    assert!(program.works(&secret));
    let limits = [("/limit", "1"), ("/limit_reset", "\"monthly\""), ("/usage", "0.001"), ("/limit_remaining", "0.999")];
    program.documents(&[("key show $org $key", &limits)]);
    let list: Value = program.json("key list $org");
    assert_eq!(list["data"][1], program.json::<Value>("key show $org $key"));
    assert_eq!(list["data"][1]["parent_id"], list["data"][0]["id"]);
    assert!(list["data"][0]["parent_id"].is_null() && list["data"][2].is_null());
    for line in ["key list $org", "key show $org $key", "audit --json"] {
        assert!(!program.run(line).success().contains(&secret), "{line}");
    }
    let made = ["shown only once", "metering admin key rotate"];
    program.prints(&[("key show $org $key", &[&*hint(&secret)]), ("key create $org --name x", &made)]);
}

#[test]
fn tables_and_documents_for_people_name_the_terms() {
    let (program, _, secret) = scene("--limit 2.5 --limit-reset daily --network 10.0.0.0/8 --rpm 7");
    let rows = program.rows("key list $org");
    let row = format!("$key batch {} active call read 0 2.5 2.5", hint(&secret));
    assert!(rows[1].starts_with(&program.text(&row)), "{rows:?}");
    let terms = ["Limit                2.5 daily", "Networks             10.0.0.0/8", "Requests per minute  7"];
    program.prints(&[("key show $org $key", &terms)]);
}

#[test]
fn each_change_of_a_key_is_a_command() {
    let (program, _, secret) = scene("--limit 0.01");
    let newest = [
        ("/entries/0/action", "\"key.change\""),
        ("/entries/0/reason", "\"Ticket 7\""),
        ("/entries/0/request/disabled", "true"),
        ("/entries/0/before/state", "\"active\""),
    ];
    let set = "key set $org $key --limit 1 --name 'batch 2' --max-in-flight 3";
    program.documents(&[
        (set, &[("/name", "\"batch 2\""), ("/max_in_flight", "3"), ("/limit_remaining", "1")]),
        ("key set $org $key --limit none", &[("/limit", "null")]),
        ("--reason 'Ticket 7' key disable $org $key", &[("/state", "\"disabled\"")]),
        ("audit --subject $org", &newest),
        ("key enable $org $key", &[("/state", "\"active\"")]),
    ]);
    let new = rotate(&program, "--grace 600");
    assert!(program.works(&secret) && program.works(&new));
    let newest = rotate(&program, "");
    assert!(!program.works(&secret) && !program.works(&new) && program.works(&newest));
    let message = failed(program.unread("key rotate $org $key"), 1);
    assert!(message.contains("is lost") && message.contains("metering admin key rotate"), "{message}");
}

#[test]
fn a_deleted_key_is_gone_but_stays_in_reports() {
    let (program, account, secret) = scene("");
    assert!(program.works(&secret) && program.works(&account.api_key));
    program.refuses(&[("key delete $org $key", 2, "--yes")]);
    program.documents(&[("key delete $org $key --yes", &[("/deleted", "true")])]);
    assert!(!program.works(&secret));
    assert_eq!(program.count("key list $org", "data"), 1);
    program.refuses(&[
        ("key show $org $key", 4, "has no key"),
        ("key disable $org $key", 4, "has no key"),
        ("key rotate $org $key", 4, "has no key"),
    ]);
    let names = [("/by_key/0/key_name", "\"First key\""), ("/by_key/1/key_name", "\"batch\"")];
    program.documents(&[("usage $org", &names)]);
    program.prints(&[
        ("usage $org", &["KEY ", "$key"]),
        ("export usage", &[",key_id,key_name,model\n", ",$key,batch,\n"]),
    ]);
}

#[test]
fn what_cannot_be_done_has_its_exit_code() {
    let (program, ..) = scene("--expires-at 2100-01-01T00:00:00Z");
    program.refuses(&[
        ("key show $org $unknown", 4, "has no key"),
        ("key disable $org $first", 5, "first key"),
        ("key delete $org $first --yes", 5, "first key"),
        ("key set $org $key", 2, "--limit"),
        ("key set $org $key --limit-reset daily", 2, "needs a limit"),
        ("key set $org $key --expires-at 2020-01-01T00:00:00Z", 2, "in the future"),
    ]);
}
