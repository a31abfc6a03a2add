//! `metering keys`.

use serde_json::{Value, json};

use super::{client, fails_with, new_key, sends};
use crate::program::Program;
use crate::stand_in::{Reply, StandIn};

const OWN: &str = "key_00000000000000000000";
const ID: &str = "key_0123456789abcdef0123";

fn document(id: &str, name: &str) -> Value {
    json!({"id": id, "name": name, "parent_id": OWN, "state": "active", "disabled": false, "limit": 2.5,
        "limit_remaining": 1.2500000001, "limit_reset": "daily", "alert_below": 0.25,
        "limit_resets_at": "2026-11-24T00:00:00.000Z",
        "usage": 7, "usage_daily": 1.2499999999, "usage_weekly": 2, "usage_monthly": 3, "last_used_at": "2026-11-23",
        "created_at": "2026-11-01T00:00:00.000Z", "expires_at": null, "scopes": ["call", "read"], "routes": ["/a/*"],
        "networks": [], "requests_per_minute": 0, "requests_per_day": 5,
        "tokens_per_minute": 0, "max_in_flight": 0})
}

fn key(id: &str, name: &str) -> Reply {
    Reply::json(&json!({ "data": document(id, name) }))
}

fn issued(secret: &str) -> Reply {
    Reply::json(&json!({"key": secret, "data": document(ID, "sub-agent")}))
}

/// A service with a key `$id`, at `/keys/$id`, next to the profile's own, `$own`.
fn with_key() -> (Program, StandIn) {
    let (program, service) = client([("/keys/current", key(OWN, "First key"))]);
    service.on(&format!("/keys/{ID}"), key(ID, "sub-agent"));
    program.call("id", ID);
    program.call("own", OWN);
    (program, service)
}

#[test]
fn a_key_is_made_with_the_profiles_and_its_secret_printed_once() {
    let new = new_key();
    let (program, service) = client([("/keys", issued(&new))]);
    let line = "keys create --name sub-agent --limit 2.5 --limit-reset daily --route /a/*";
    let ran = program.run(line).expect(0).says("shown only once");
    assert!(ran.stdout.matches(&new).count() == 1 && !ran.stderr.contains(&new), "{ran:?}");
    let body = r#"{"name":"sub-agent","limit":2.5,"limit_reset":"daily","routes":["/a/*"]}"#;
    sends(&program, &service, &[(line, &format!("POST /keys {body}"), "")]);
    let request = service.last();
    assert_eq!(request.key(), Some(program.text("$key").as_str()));
    assert!(request.header("idempotency-key").unwrap().len() >= 32);
    let printed: Value = program.run(&format!("{line} --json")).json();
    assert_eq!((&printed["key"], &printed["data"]["id"]), (&json!(new), &json!(ID)));
}

#[test]
fn a_key_can_go_into_a_profile_that_has_none() {
    let new = new_key();
    let (program, service) = client([("/keys", issued(&new)), ("/credits/balance", Reply::ok("{}"))]);
    program.refuses(&[("keys create --name x --save-profile default", 5, "profile default has a key")]);
    assert!(service.requests().is_empty());
    let ran = program.run("keys create --name x --save-profile sub").expect(0);
    assert!(!ran.shows(&new) && ran.stdout.contains("in profile sub"), "{ran:?}");
    let _ = program.run("balance --profile sub --json");
    assert_eq!(service.last().key(), Some(new.as_str()));
}

/// The same for every command that issues a secret: `keys create` and `rotate --current`.
#[test]
fn a_lost_response_is_requested_again_with_the_same_idempotency_key() {
    for (line, path, reply) in [
        ("keys create --name x", "/keys", issued(&new_key())),
        ("rotate --current", "/keys/current/rotate", super::rotate::issued(&new_key())),
    ] {
        let (program, service) = client([(path, Reply::error(503, "outcome_unknown")), (path, reply)]);
        let _ = program.run(line).expect(0);
        let sent = service.requests();
        assert_eq!((sent.len(), sent[0].header("idempotency-key")), (2, sent[1].header("idempotency-key")));

        // A person can do the same, with the old key.
        let (program, service) = client([(path, Reply::error(503, "outcome_unknown"))]);
        let message = program.run(line).failure(8);
        let given = message.rsplit("--idempotency-key ").next().unwrap().split('`').next().unwrap();
        let header = format!("\"{given}\"");
        assert_eq!(service.requests()[0].header("idempotency-key"), Some(header.as_str()));
        let _ = program.run(&format!("{line} --idempotency-key {given}")).failure(8);
        let last = service.last();
        assert_eq!(last.header("idempotency-key"), Some(header.as_str()));
        assert_eq!(last.key(), Some(program.text("$key").as_str()));
    }
}

#[test]
fn refusals_are_not_repeated_and_have_their_exit_codes() {
    let cases = [
        ("/keys", 403, "key_scope", 6),
        ("/keys", 400, "validation_failed", 2),
        ("/keys", 409, "conflict", 5),
        ("/keys", 401, "key_expired", 6),
    ];
    fails_with("keys create --name x", &cases);
}

#[test]
fn all_pages_of_the_list_are_shown() {
    let page =
        |id: &str, name: &str, next: Option<&str>| Reply::json(&json!({"data": [document(id, name)], "next": next}));
    let (first, second) = (page(OWN, "First key", Some("1&a")), page(ID, "\u{1b}[2J", None));
    let (program, service) = client([]);
    service.on_each("/keys", [first.clone(), second.clone(), first, second]);
    let table = program.run("keys list").success();
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("ID ") && lines[2].starts_with(ID), "{table}");
    assert!(table.contains("1.2500000001") && !table.contains('\u{1b}'), "{table}");
    assert_eq!(service.targets(), ["/keys?limit=100", "/keys?limit=100&after=1%26a"]);
    let json = program.run("keys list --json").expect(0);
    assert!(json.stdout.contains("1.2500000001"), "amounts are as the service wrote them: {json:?}");
    assert_eq!(json.json::<Value>()["data"].as_array().unwrap().len(), 2);
}

#[test]
fn keys_are_shown_and_changed() {
    let (program, service) = with_key();
    let shown =
        ["sub-agent", "2.5 daily", "1.2500000001 until 2026-11-24T00:00:00.000Z", "below 0.25", "call read", "/a/*"];
    program.prints(&[("keys show", &[OWN]), ("keys show $id", &shown)]);
    let bytes = json!({ "data": document(ID, "sub-agent") });
    assert_eq!(program.run("keys show $id --json").success(), format!("{bytes}\n"));
    // Changes send only what changes.
    let limit = r#"PATCH /keys/$id {"limit":null,"requests_per_minute":9}"#;
    let cases = [
        ("keys set $id --limit none --rpm 9", limit, ID),
        ("keys set $id --route any", r#"PATCH /keys/$id {"routes":null}"#, ID),
        ("keys disable $id", r#"PATCH /keys/$id {"disabled":true}"#, ID),
        ("keys enable $id", r#"PATCH /keys/$id {"disabled":false}"#, ID),
    ];
    sends(&program, &service, &cases);
}

#[test]
fn the_secret_of_another_key_is_replaced_and_not_the_profiles_own() {
    let (program, service) = with_key();
    let new = new_key();
    service.on(&format!("/keys/{ID}/rotate"), issued(&new));
    let rotation = r#"POST /keys/$id/rotate {"grace_seconds":60}"#;
    sends(&program, &service, &[("keys rotate $id --grace 60", rotation, &new)]);
    program.refuses(&[("keys rotate $own", 2, "metering rotate --current")]);
    assert!(!service.targets().contains(&format!("/keys/{OWN}/rotate")));
}

#[test]
fn deletion_needs_a_yes() {
    let (program, service) = with_key();
    service.on(&format!("/keys/{ID}"), Reply::ok(r#"{"deleted":true}"#));
    program.refuses(&[("keys delete $id", 2, "--yes")]);
    sends(&program, &service, &[("keys delete $id --yes", "DELETE /keys/$id", "deleted")]);
}

#[test]
fn a_leaked_key_is_read_from_standard_input_and_never_printed() {
    let (program, service) = client([
        ("/keys/leaked", Reply::ok(r#"{"disabled":true}"#)),
        ("/keys/leaked", Reply::ok(r#"{"disabled":false}"#)),
    ]);
    let found = new_key();
    for outcome in ["no longer works", "did not work"] {
        let ran = program.reading("keys leaked", &format!("{found}\n")).expect(0);
        assert!(ran.stdout.contains(outcome) && !ran.shows(&found), "{ran:?}");
        let request = service.last();
        assert_eq!((request.key(), request.json()), (None, json!({ "key": found })), "no key is needed");
    }
    let malformed = program.reading("keys leaked", "sk_live_x\n").failure(2);
    assert!(!malformed.contains("sk_live_x"), "{malformed}");
}
