//! `metering recover`.

use metering_core::signups::LinkToken;
use metering_core::{ApiKey, SystemRandomness};
use serde_json::json;

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const ASK: &str = "/api-key/recover/email";
const CONFIRM: &str = "/api-key/recover/email/confirm";

fn link_to(url: &str) -> (String, LinkToken) {
    let token = LinkToken::generate(&SystemRandomness);
    (format!("{url}/metering/recover#{}", token.expose()), token)
}

fn issued(key: &ApiKey) -> Reply {
    let limits = json!({"requests_per_minute": 240, "requests_per_day": 0});
    let body = json!({"status": "ok", "rotated": true, "api_key": key.expose(), "org_id": "org_0123456789abcdefghij",
        "credit_balance": 2, "rate_limits": limits});
    Reply::ok(body.to_string())
}

#[test]
fn link_is_requested_for_an_address() {
    let service = StandIn::start();
    service.on(ASK, Reply::ok(json!({"status": "accepted", "expires_in": 600}).to_string()));
    let (home, key) = Home::of(&service);
    let ran = home.metering(&["recover", "--email", "me@example.com"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("If an account has verified me@example.com"), "{ran:?}");
    let request = &service.requests()[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", ASK));
    assert_eq!(request.header("authorization"), None, "no key is needed");
    assert!(!format!("{ran:?}").contains(key.expose()));
}

#[test]
fn link_is_exchanged_for_a_key_that_the_profile_keeps() {
    let service = StandIn::start();
    let new = ApiKey::generate(&SystemRandomness);
    service
        .on("/credits/balance", Reply::error(401, "unauthorized"))
        .on(CONFIRM, Reply::error(503, "outcome_unknown"))
        .on(CONFIRM, issued(&new));
    let (home, _) = Home::of(&service);
    let (link, token) = link_to(&service.url());
    let ran = home.metering(&["recover", "--link", &link]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!format!("{ran:?}").contains(new.expose()) && !format!("{ran:?}").contains(token.expose()), "{ran:?}");
    let sent: Vec<_> = service.requests().into_iter().filter(|request| request.target == CONFIRM).collect();
    assert_eq!(sent.len(), 2, "the lost response is requested again");
    assert_eq!(sent[0].header("idempotency-key"), sent[1].header("idempotency-key"));
    assert!(sent[0].header("idempotency-key").unwrap().len() >= 32);
    service.on("/credits/balance", Reply::ok("{}"));
    let _ = home.metering(&["balance", "--json"]);
    let last = service.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some(format!("Bearer {}", new.expose()).as_str()), "the profile has it");
}

#[test]
fn other_keys_that_still_work_are_named() {
    let service = StandIn::start();
    let new = ApiKey::generate(&SystemRandomness);
    let body = json!({"status": "ok", "rotated": true, "api_key": new.expose(), "org_id": "org_0123456789abcdefghij",
        "credit_balance": 2, "rate_limits": {"requests_per_minute": 240, "requests_per_day": 0},
        "remaining_keys": [{"id": "key_0123456789abcdef0123", "name": "sub\u{1b}agent"}]});
    service.on("/credits/balance", Reply::error(401, "unauthorized")).on(CONFIRM, Reply::ok(body.to_string()));
    let (home, _) = Home::of(&service);
    let (link, _) = link_to(&service.url());
    let ran = home.metering(&["recover", "--link", &link]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("key_0123456789abcdef0123  sub\u{fffd}agent\n"), "{ran:?}");
    assert!(ran.stderr.contains("`metering keys delete`"), "{ran:?}");
}

#[test]
fn key_that_works_is_not_overwritten() {
    let service = StandIn::start();
    let new = ApiKey::generate(&SystemRandomness);
    service.on("/credits/balance", Reply::ok("{}")).on(CONFIRM, issued(&new));
    let (home, _) = Home::of(&service);
    let (link, _) = link_to(&service.url());
    let message = home.metering(&["recover", "--link", &link]).failure(5);
    assert!(message.contains("--replace-key"), "{message}");
    assert!(service.requests().iter().all(|request| request.target != CONFIRM), "the link is not used up");
    assert_eq!(home.metering(&["recover", "--link", &link, "--replace-key"]).code, 0);
}

#[test]
fn broken_link_is_refused_without_being_repeated() {
    let service = StandIn::start();
    let (home, _) = Home::of(&service);
    let message = home.metering(&["recover", "--link", "https://acme.example/metering/recover#eml_secret"]).failure(2);
    assert!(message.contains("the whole link") && !message.contains("secret"), "{message}");
    assert!(service.requests().is_empty());
}

#[test]
fn link_of_another_service_is_not_used_up_by_this_one() {
    let service = StandIn::start();
    let new = ApiKey::generate(&SystemRandomness);
    service.on("/credits/balance", Reply::error(401, "unauthorized")).on(CONFIRM, issued(&new));
    let (home, _) = Home::of(&service);
    let (link, token) = link_to("https://other.example");
    let message = home.metering(&["recover", "--link", &link]).failure(2);
    assert!(message.contains("does not lead to") && !message.contains(token.expose()), "{message}");
    assert!(service.requests().is_empty());
    let ran = home.metering(&["recover", "--link", token.expose()]);
    assert_eq!(ran.code, 0, "the part after # says nothing about the service: {ran:?}");
}
