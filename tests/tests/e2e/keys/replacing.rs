//! New secrets for keys: rotation with a grace period, and keys that leaked.

use metering_tests::site::Site;
use serde_json::json;

use super::{Made, change, made};
use crate::support::wait::until;
use crate::support::wire::{BASE, STREAM};

const ROTATION: &str = "8e03978e-40d5-43e8-bc93-6894a57f9324";

#[test]
fn old_secret_works_until_its_grace_is_over() {
    let (_site, account, server) = Site::serving("2");
    let owner = server.client_with(&account.api_key);
    let key = made(&owner, &json!({"limit": 1}));
    let (old, path) = (server.client_with(&key.secret), format!("{}/rotate", key.path()));
    let rotated = Made::of(&owner.post(&path, &json!({"grace_seconds": 3})).expect(200));
    assert_eq!(rotated.id, key.id);
    let new = server.client_with(&rotated.secret);
    assert_eq!((old.get(BASE).status, new.get(BASE).status), (200, 200));
    until("the old secret has expired", || old.get(BASE).status == 401);
    assert_eq!(old.get(BASE).expect(401).error(), "unauthorized", "this is not an expired key, but an old secret");
    let used = new.get("/keys/current").expect(200).json()["data"]["limit_remaining"].to_string();
    assert!(used.as_str() < "0.99972223", "both secrets count for one key: {used}");

    // Without grace, immediately; the body may be missing.
    let newest = Made::of(&owner.send("POST", &path, None).expect(200));
    assert_eq!((new.get(BASE).status, server.client_with(&newest.secret).get(BASE).status), (401, 200));
    for body in [json!({"grace_seconds": 604_801}), json!({"grace_seconds": -1}), json!({"grace": 1})] {
        assert_eq!(owner.post(&path, &body).expect(400).error(), "validation_failed", "{body}");
    }
}

#[test]
fn lost_response_of_a_rotation_can_be_fetched_again() {
    let (_site, account, server) = Site::serving("2");
    let owner = server.client_with(&account.api_key);
    let key = made(&owner, &json!({"scopes": ["call", "manage"]}));
    let path = format!("{}/rotate", key.path());
    // With the key itself, whose secret no longer works the second time.
    let own = server.client_with(&key.secret).with_header("Idempotency-Key", ROTATION);
    let [first, again] = [(); 2].map(|()| Made::of(&own.send("POST", &path, None).expect(200)));
    assert_eq!(first.secret, again.secret);
    assert_eq!(server.client_with(&first.secret).get(BASE).status, 200);
    assert_eq!(own.post(&path, &json!({"grace": 1})).expect(401).error(), "unauthorized", "the key before its body");
    let other = server.client_with(&key.secret).with_header("Idempotency-Key", &ROTATION.replace('8', "9"));
    assert_eq!(other.send("POST", &path, None).expect(401).error(), "unauthorized");
}

#[test]
fn leaked_key_stops_until_it_is_rotated() {
    let (_site, account, server) =
        Site::serving_with("2", |server| server.set("METERING_GATEWAY__STREAM_CHECK", "100ms"));
    let (owner, anyone) = (server.client_with(&account.api_key), server.client());
    let key = made(&owner, &json!({"scopes": ["call", "read", "manage"]}));
    let below = made(&server.client_with(&key.secret), &json!({}));
    let stream = server.client_with(&key.secret).open(STREAM);
    assert_eq!(stream.status, 200);
    let report = |secret: &str| anyone.post("/keys/leaked", &json!({"key": secret}));
    assert_eq!(report(&key.secret).expect(200).json(), json!({"disabled": true}));
    for secret in [&key.secret, &below.secret] {
        assert_eq!(server.client_with(secret).get(BASE).expect(401).error(), "unauthorized");
    }
    let _ = stream.finish();
    assert_eq!(owner.get(&key.path()).expect(200).json()["data"]["state"], "leaked");
    assert_eq!(report(&key.secret).expect(200).json(), json!({"disabled": false}), "it is not live any more");
    assert_eq!(change(&owner, &key, &json!({"disabled": false})).status, 409);
    let rotated = Made::of(&owner.send("POST", &format!("{}/rotate", key.path()), None).expect(200));
    assert_eq!(server.client_with(&rotated.secret).get(BASE).status, 200);
    assert_eq!(server.client_with(&below.secret).get(BASE).status, 401, "the finder may have made this one");
    assert_eq!(owner.get(&below.path()).status, 404);
    assert_eq!(server.client_with(&key.secret).get(BASE).status, 401);
    assert!(!server.log().contains("sk_live_"));
}

#[test]
fn reports_of_leaked_keys_are_checked_and_rate_limited() {
    let site = Site::new();
    let _ = site.account("1");
    let server = site.server().set("METERING_LIMITS__LEAK_REPORTS_PER_IP", "6/1m").start();
    let client = server.client();
    let unknown = metering_core::ApiKey::generate(&metering_core::SystemRandomness);
    let unknown = client.post("/keys/leaked", &json!({"key": unknown.expose()})).expect(200);
    assert_eq!(unknown.json(), json!({"disabled": false}));
    for body in [json!({}), json!({"key": "sk_live_x"}), json!({"key": 1}), json!({"secret": "x"})] {
        let refused = client.post("/keys/leaked", &body).expect(400);
        assert_eq!(refused.error(), "validation_failed", "{body}");
        assert!(!refused.text().contains("sk_live_x"), "{}", refused.text());
    }
    assert_eq!(client.send("POST", "/keys/leaked", Some(b"{")).expect(400).error(), "invalid_json");
    assert_eq!(client.post("/keys/leaked", &json!({})).expect(429).error(), "rate_limited");
}
