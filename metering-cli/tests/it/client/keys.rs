//! `metering keys`.

use metering_core::{ApiKey, SystemRandomness};
use serde_json::{Value, json};

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const OWN: &str = "key_00000000000000000000";
const ID: &str = "key_0123456789abcdef0123";

fn document(id: &str, name: &str) -> Value {
    json!({"id": id, "name": name, "parent_id": OWN, "state": "active", "disabled": false, "limit": 2.5,
        "limit_remaining": 1.2500000001, "limit_reset": "daily", "alert_below": 0.25, "limit_resets_at": "2026-11-24T00:00:00.000Z",
        "usage": 7, "usage_daily": 1.2499999999, "usage_weekly": 2, "usage_monthly": 3, "last_used_at": "2026-11-23",
        "created_at": "2026-11-01T00:00:00.000Z", "expires_at": null, "scopes": ["call", "read"], "routes": ["/a/*"],
        "networks": [], "requests_per_minute": 0, "requests_per_day": 5, "max_in_flight": 0})
}

fn key(id: &str, name: &str) -> Reply {
    Reply::ok(json!({ "data": document(id, name) }).to_string())
}

fn issued(secret: &ApiKey) -> Reply {
    Reply::ok(json!({"key": secret.expose(), "data": document(ID, "sub-agent")}).to_string())
}

fn secret() -> ApiKey {
    ApiKey::generate(&SystemRandomness)
}

#[test]
fn a_key_is_made_with_the_profiles_and_its_secret_printed_once() {
    let service = StandIn::start();
    let new = secret();
    service.on("/keys", issued(&new));
    let (home, own) = Home::of(&service);
    let args = ["keys", "create", "--name", "sub-agent", "--limit", "2.5", "--limit-reset", "daily", "--route", "/a/*"];
    let ran = home.metering(&args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout.matches(new.expose()).count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("shown only once") && !ran.stderr.contains(new.expose()), "{ran:?}");
    let request = &service.requests()[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/keys"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {}", own.expose()).as_str()));
    assert!(request.header("idempotency-key").unwrap().len() >= 32);
    let expected = r#"{"name":"sub-agent","limit":2.5,"limit_reset":"daily","routes":["/a/*"]}"#;
    assert_eq!(request.body, expected.as_bytes());
    let json = home.metering(&[&args[..], &["--json"]].concat()).json();
    assert_eq!((json["key"].as_str(), json["data"]["id"].as_str()), (Some(new.expose()), Some(ID)));
}

#[test]
fn a_key_can_go_into_a_profile_that_has_none() {
    let service = StandIn::start();
    let new = secret();
    service.on("/keys", issued(&new)).on("/credits/balance", Reply::ok("{}"));
    let (home, _) = Home::of(&service);
    let taken = home.metering(&["keys", "create", "--name", "x", "--save-profile", "default"]).failure(5);
    assert!(taken.contains("profile default has a key"), "{taken}");
    assert!(service.requests().is_empty());
    let ran = home.metering(&["keys", "create", "--name", "x", "--save-profile", "sub"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!format!("{ran:?}").contains(new.expose()) && ran.stdout.contains("in profile sub"), "{ran:?}");
    let _ = home.metering(&["balance", "--profile", "sub", "--json"]);
    let last = service.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some(format!("Bearer {}", new.expose()).as_str()));
}

#[test]
fn a_lost_response_is_requested_again_with_the_same_idempotency_key() {
    let service = StandIn::start();
    let new = secret();
    service.on("/keys", Reply::error(503, "outcome_unknown")).on("/keys", issued(&new));
    let (home, _) = Home::of(&service);
    assert_eq!(home.metering(&["keys", "create", "--name", "x"]).code, 0);
    let sent = service.requests();
    assert_eq!((sent.len(), sent[0].header("idempotency-key")), (2, sent[1].header("idempotency-key")));

    let service = StandIn::start();
    service.on("/keys", Reply::error(503, "outcome_unknown"));
    let (home, _) = Home::of(&service);
    let message = home.metering(&["keys", "create", "--name", "x"]).failure(8);
    let given = message.rsplit("--idempotency-key ").next().unwrap();
    assert_eq!(service.requests()[0].header("idempotency-key"), Some(format!("\"{given}\"").as_str()));
    let _ = home.metering(&["keys", "create", "--name", "x", "--idempotency-key", given]).failure(8);
    let last = service.requests().pop().unwrap();
    assert_eq!(last.header("idempotency-key"), Some(format!("\"{given}\"").as_str()));
}

#[test]
fn refusals_are_not_repeated_and_have_their_exit_codes() {
    for (status, error, code) in
        [(403, "key_scope", 6), (400, "validation_failed", 2), (409, "conflict", 5), (401, "key_expired", 6)]
    {
        let service = StandIn::start();
        service.on("/keys", Reply::error(status, error));
        let (home, _) = Home::of(&service);
        let message = home.metering(&["keys", "create", "--name", "x"]).failure(code);
        assert!(message.contains(error) && !message.contains("metering rotate"), "{message}");
        assert_eq!(service.requests().len(), 1);
    }
}

#[test]
fn all_pages_of_the_list_are_shown() {
    let service = StandIn::start();
    let page = |id: &str, name: &str, next: Option<&str>| {
        Reply::ok(json!({"data": [document(id, name)], "next": next}).to_string())
    };
    for _ in 0..2 {
        service.on("/keys", page(OWN, "First key", Some("1&a"))).on("/keys", page(ID, "\u{1b}[2J", None));
    }
    let (home, _) = Home::of(&service);
    let table = home.metering(&["keys", "list"]).success();
    let lines: Vec<_> = table.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("ID ") && lines[2].starts_with(ID), "{table}");
    assert!(table.contains("1.2500000001") && !table.contains('\u{1b}'), "{table}");
    assert_eq!(service.targets(), ["/keys?limit=100", "/keys?limit=100&after=1%26a"]);
    let json = home.metering(&["keys", "list", "--json"]);
    assert!(json.stdout.contains("1.2500000001"), "amounts are as the service wrote them: {json:?}");
    assert_eq!(json.json()["data"].as_array().unwrap().len(), 2);
}

#[test]
fn a_key_is_shown_with_its_limit() {
    let service = StandIn::start();
    service.on("/keys/current", key(OWN, "First key")).on(&format!("/keys/{ID}"), key(ID, "sub-agent"));
    let (home, _) = Home::of(&service);
    let own = home.metering(&["keys", "show"]).success();
    assert!(own.contains(OWN), "{own}");
    let text = home.metering(&["keys", "show", ID]).success();
    for expected in
        ["sub-agent", "2.5 daily", "1.2500000001 until 2026-11-24T00:00:00.000Z", "below 0.25", "call read", "/a/*"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let bytes = json!({ "data": document(ID, "sub-agent") }).to_string();
    assert_eq!(home.metering(&["keys", "show", ID, "--json"]).success(), format!("{bytes}\n"));
}

#[test]
fn changes_send_only_what_changes() {
    let service = StandIn::start();
    let path = format!("/keys/{ID}");
    service.on(&path, key(ID, "sub-agent"));
    let (home, _) = Home::of(&service);
    let table = [
        (&["set", ID, "--limit", "none", "--rpm", "9"][..], r#"{"limit":null,"requests_per_minute":9}"#),
        (&["set", ID, "--route", "any"], r#"{"routes":null}"#),
        (&["disable", ID], r#"{"disabled":true}"#),
        (&["enable", ID], r#"{"disabled":false}"#),
    ];
    for (args, expected) in table {
        assert!(home.metering(&[&["keys"], args].concat()).success().contains(ID));
        let request = service.requests().pop().unwrap();
        assert_eq!((request.method.as_str(), &request.target), ("PATCH", &path));
        assert_eq!(request.body, expected.as_bytes());
    }
}

#[test]
fn the_secret_of_another_key_is_replaced_and_not_the_profiles_own() {
    let service = StandIn::start();
    let new = secret();
    service.on("/keys/current", key(OWN, "First key")).on(&format!("/keys/{ID}/rotate"), issued(&new));
    let (home, _) = Home::of(&service);
    let ran = home.metering(&["keys", "rotate", ID, "--grace", "60"]);
    assert!(ran.code == 0 && ran.stdout.contains(new.expose()), "{ran:?}");
    assert_eq!(service.requests().pop().unwrap().body, r#"{"grace_seconds":60}"#.as_bytes());
    let refused = home.metering(&["keys", "rotate", OWN]).failure(2);
    assert!(refused.contains("metering rotate --current"), "{refused}");
    assert!(!service.targets().contains(&format!("/keys/{OWN}/rotate")));
}

#[test]
fn deletion_needs_a_yes() {
    let service = StandIn::start();
    let path = format!("/keys/{ID}");
    service.on(&path, key(ID, "sub-agent")).on(&path, Reply::ok(r#"{"deleted":true}"#));
    let (home, _) = Home::of(&service);
    let refused = home.metering(&["keys", "delete", ID]).failure(2);
    assert!(refused.contains("--yes"), "{refused}");
    assert!(home.metering(&["keys", "delete", ID, "--yes"]).success().contains("deleted"));
    assert_eq!(service.requests().pop().unwrap().method, "DELETE");
}

#[test]
fn a_leaked_key_is_read_from_standard_input_and_never_printed() {
    let service = StandIn::start();
    service
        .on("/keys/leaked", Reply::ok(r#"{"disabled":true}"#))
        .on("/keys/leaked", Reply::ok(r#"{"disabled":false}"#));
    let (home, found) = (Home::new(), secret());
    let args = ["keys", "leaked", "--url", &service.url()];
    let ran = home.reading(&args, &format!("{}\n", found.expose()));
    assert!(ran.code == 0 && ran.stdout.contains("no longer works"), "{ran:?}");
    assert!(!format!("{ran:?}").contains(found.expose()));
    let request = &service.requests()[0];
    assert_eq!(request.header("authorization"), None, "no key is needed");
    assert_eq!(request.body, json!({"key": found.expose()}).to_string().as_bytes());
    let again = home.reading(&args, &format!("{}\n", found.expose())).success();
    assert!(again.contains("did not work"), "{again}");
    let malformed = home.reading(&args, "sk_live_x\n").failure(2);
    assert!(!malformed.contains("sk_live_x"), "{malformed}");
}
