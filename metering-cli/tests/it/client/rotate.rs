//! `metering rotate --current`. A lost response is tested with `metering keys`.

use serde_json::json;

use super::{client, new_key};
use crate::stand_in::Reply;

const PATH: &str = "/keys/current/rotate";

pub(super) fn issued(key: &str) -> Reply {
    let limits = json!({"requests_per_minute": 240, "requests_per_day": 0});
    Reply::json(&json!({"status": "ok", "rotated": true, "api_key": key, "org_id": "org_0123456789abcdefghij",
        "credit_balance": 2, "rate_limits": limits}))
}

#[test]
fn current_key_is_replaced_and_stored() {
    let new = new_key();
    let (program, service) = client([(PATH, issued(&new)), ("/credits/balance", Reply::ok("{}"))]);
    let ran = program.run("rotate --current").expect(0).says("If this is interrupted");
    assert!(ran.stdout.contains("The account has a new key") && !ran.shows(&new), "{ran:?}");
    let request = service.last();
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", PATH));
    assert_eq!(request.key(), Some(program.text("$key").as_str()));
    assert!(request.header("idempotency-key").unwrap().len() >= 32);
    let _ = program.run("balance --json");
    assert_eq!(service.last().key(), Some(new.as_str()), "the profile has it");
    // A refusal is not repeated.
    let (program, service) = client([(PATH, Reply::error(401, "unauthorized"))]);
    program.refuses(&[("rotate --current", 6, "unauthorized")]);
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn refusal_after_a_lost_response_keeps_the_way_to_the_new_key() {
    for later in [Reply::error(429, "rate_limited"), Reply::ok("not JSON")] {
        let (program, service) = client([(PATH, Reply::error(503, "outcome_unknown")), (PATH, later)]);
        program.refuses(&[("rotate --current", 8, "the key may have been replaced")]);
        let sent = service.requests();
        assert!(sent.iter().all(|request| request.header("idempotency-key") == sent[0].header("idempotency-key")));
    }
}

#[test]
fn key_from_the_environment_does_not_replace_another_one_in_the_profile() {
    let (program, service) = client([(PATH, issued(&new_key()))]);
    let (stored, other) = (program.text("$key"), new_key());
    let run = |key: &str, line: &str| program.run_with(&[("METERING_CLIENT_API_KEY", key)], line);
    let _ = run(&other, "rotate --current").expect(5).says("--replace-key");
    assert!(service.requests().is_empty());
    // It is the profile's own.
    let _ = run(&stored, "rotate --current").expect(0);
    let _ = run(&other, "rotate --current --replace-key").expect(0);
}
