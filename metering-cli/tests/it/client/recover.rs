//! `metering recover`.

use metering_core::SystemRandomness;
use metering_core::signups::LinkToken;
use serde_json::json;

use super::rotate::issued;
use super::{client, new_key};
use crate::program::Program;
use crate::stand_in::{Reply, StandIn};

const ASK: &str = "/api-key/recover/email";
const CONFIRM: &str = "/api-key/recover/email/confirm";

/// A service that knows the profile's key, or not, and confirms `$link`, whose secret is `$token`.
fn scene(balance: Reply, confirmed: Reply) -> (Program, StandIn) {
    let (program, service) = client([("/credits/balance", balance), (CONFIRM, confirmed)]);
    let token = LinkToken::generate(&SystemRandomness);
    program.call("link", format!("{}/metering/recover#{}", service.url(), token.expose()));
    program.call("token", token.expose());
    (program, service)
}

fn unknown_key() -> Reply {
    Reply::error(401, "unauthorized")
}

#[test]
fn link_is_requested_for_an_address() {
    let accepted = json!({"status": "accepted", "expires_in": 600});
    let (program, service) = client([(ASK, Reply::json(&accepted))]);
    let ran = program.run("recover --email me@example.com").expect(0);
    let request = service.last();
    assert_eq!((request.method.as_str(), request.target.as_str(), request.key()), ("POST", ASK, None));
    assert!(!ran.shows(&program.text("$key")), "{ran:?}");
    let _ = ran.says("If an account has verified me@example.com");
}

#[test]
fn link_is_exchanged_for_a_key_that_the_profile_keeps() {
    let new = new_key();
    let (program, service) = scene(unknown_key(), Reply::error(503, "outcome_unknown"));
    service.on(CONFIRM, issued(&new));
    let ran = program.run("recover --link $link").expect(0);
    assert!(!ran.shows(&new) && !ran.shows(&program.text("$token")), "{ran:?}");
    let sent: Vec<_> = service.requests().into_iter().filter(|request| request.target == CONFIRM).collect();
    assert_eq!(sent.len(), 2, "the lost response is requested again");
    assert_eq!(sent[0].header("idempotency-key"), sent[1].header("idempotency-key"));
    assert!(sent[0].header("idempotency-key").unwrap().len() >= 32);
    service.on("/credits/balance", Reply::ok("{}"));
    let _ = program.run("balance --json");
    assert_eq!(service.last().key(), Some(new.as_str()), "the profile has it");
}

#[test]
fn other_keys_that_still_work_are_named() {
    let limits = json!({"requests_per_minute": 240, "requests_per_day": 0});
    let remaining = json!([{"id": "key_0123456789abcdef0123", "name": "sub\u{1b}agent"}]);
    let body = json!({"status": "ok", "rotated": true, "api_key": new_key(), "org_id": "org_0123456789abcdefghij",
        "credit_balance": 2, "rate_limits": limits, "remaining_keys": remaining});
    let (program, _service) = scene(unknown_key(), Reply::json(&body));
    let ran = program.run("recover --link $link").expect(0).says("key_0123456789abcdef0123  sub\u{fffd}agent\n");
    let _ = ran.says("`metering keys delete`");
}

#[test]
fn key_that_works_is_not_overwritten() {
    let (program, service) = scene(Reply::ok("{}"), issued(&new_key()));
    program.refuses(&[("recover --link $link", 5, "--replace-key")]);
    assert_eq!(service.count(CONFIRM), 0, "the link is not used up");
    let _ = program.run("recover --link $link --replace-key").expect(0);
}

#[test]
fn link_that_is_broken_or_of_another_service_is_not_used_up() {
    let (program, service) = scene(unknown_key(), issued(&new_key()));
    for (link, expected) in [
        ("https://acme.example/metering/recover#eml_secret", "the whole link"),
        ("https://other.example/metering/recover#$token", "does not lead to"),
    ] {
        let message = program.run(&format!("recover --link {link}")).failure(2);
        assert!(message.contains(expected) && !message.contains("secret"), "{message}");
        assert!(!message.contains(&program.text("$token")), "{message}");
    }
    assert!(service.requests().is_empty());
    // The part after # says nothing about the service.
    let _ = program.run("recover --link $token").expect(0);
}
