//! `metering rotate --current`.

use metering_core::{ApiKey, SystemRandomness};
use serde_json::json;

use crate::home::Home;
use crate::stand_in::{Reply, StandIn};

const PATH: &str = "/keys/current/rotate";

fn issued(key: &ApiKey) -> Reply {
    let limits = json!({"requests_per_minute": 240, "requests_per_day": 0});
    let body = json!({"status": "ok", "rotated": true, "api_key": key.expose(), "org_id": "org_0123456789abcdefghij",
        "credit_balance": 2, "rate_limits": limits});
    Reply::ok(body.to_string())
}

#[test]
fn current_key_is_replaced_and_stored() {
    let service = StandIn::start();
    let new = ApiKey::generate(&SystemRandomness);
    service.on(PATH, issued(&new)).on("/credits/balance", Reply::ok("{}"));
    let (home, old) = Home::of(&service);
    let ran = home.metering(&["rotate", "--current"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("The account has a new key"), "{ran:?}");
    assert!(ran.stderr.contains("If this is interrupted"), "{ran:?}");
    assert!(!format!("{ran:?}").contains(new.expose()), "{ran:?}");
    let request = &service.requests()[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", PATH));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {}", old.expose()).as_str()));
    assert!(request.header("idempotency-key").unwrap().len() >= 32);
    let _ = home.metering(&["balance", "--json"]);
    let next = &service.requests()[1];
    assert_eq!(next.header("authorization"), Some(format!("Bearer {}", new.expose()).as_str()), "the profile has it");
}

#[test]
fn lost_response_is_requested_again_with_the_same_idempotency_key() {
    let service = StandIn::start();
    let new = ApiKey::generate(&SystemRandomness);
    service.on(PATH, Reply::error(503, "outcome_unknown")).on(PATH, issued(&new));
    let (home, _) = Home::of(&service);
    assert_eq!(home.metering(&["rotate", "--current"]).code, 0);
    let sent: Vec<_> =
        service.requests().iter().map(|request| request.header("idempotency-key").unwrap().to_owned()).collect();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
}

#[test]
fn user_can_repeat_a_rotation_whose_response_was_lost() {
    let service = StandIn::start();
    service.on(PATH, Reply::error(503, "outcome_unknown"));
    let (home, old) = Home::of(&service);
    let message = home.metering(&["rotate", "--current"]).failure(8);
    let given = message.rsplit("--idempotency-key ").next().unwrap().split('`').next().unwrap();
    assert_eq!(service.requests()[0].header("idempotency-key"), Some(format!("\"{given}\"").as_str()));
    let _ = home.metering(&["rotate", "--current", "--idempotency-key", given]).failure(8);
    let last = service.requests().pop().unwrap();
    assert_eq!(last.header("idempotency-key"), Some(format!("\"{given}\"").as_str()));
    assert_eq!(last.header("authorization"), Some(format!("Bearer {}", old.expose()).as_str()), "the old key is kept");
}

#[test]
fn refused_rotation_is_not_repeated() {
    let service = StandIn::start();
    service.on(PATH, Reply::error(401, "unauthorized"));
    let (home, _) = Home::of(&service);
    let _ = home.metering(&["rotate", "--current"]).failure(6);
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn refusal_after_a_lost_response_keeps_the_way_to_the_new_key() {
    for later in [Reply::error(429, "rate_limited"), Reply::ok("not JSON")] {
        let service = StandIn::start();
        service.on(PATH, Reply::error(503, "outcome_unknown")).on(PATH, later);
        let (home, _) = Home::of(&service);
        let message = home.metering(&["rotate", "--current"]).failure(8);
        assert!(message.contains("the key may have been replaced"), "{message}");
        let sent = service.requests();
        assert!(sent.iter().all(|request| request.header("idempotency-key") == sent[0].header("idempotency-key")));
    }
}

#[test]
fn key_from_the_environment_does_not_replace_another_one_in_the_profile() {
    let service = StandIn::start();
    let (home, stored) = Home::of(&service);
    let other = ApiKey::generate(&SystemRandomness);
    let run =
        |key: &ApiKey, args: &[&str]| home.command(args).env("METERING_CLIENT_API_KEY", key.expose()).output().unwrap();
    let refused = run(&other, &["rotate", "--current"]);
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--replace-key"), "{refused:?}");
    assert!(service.requests().is_empty());
    let new = ApiKey::generate(&SystemRandomness);
    service.on(PATH, issued(&new)).on(PATH, issued(&new));
    assert!(run(&stored, &["rotate", "--current"]).status.success(), "it is the profile's own");
    assert!(run(&other, &["rotate", "--current", "--replace-key"]).status.success());
}
