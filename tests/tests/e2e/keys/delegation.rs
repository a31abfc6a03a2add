//! Keys for others: an agent hands a key with less to each of its helpers.

use std::time::Duration;

use metering_core::{Clock, SystemClock};
use metering_tests::site::Site;
use serde_json::json;

use super::{change, made};
use crate::support::wait::until;
use crate::support::wire::{BASE, STREAM, balance};

/// The time in so many seconds, as RFC 3339.
fn in_seconds(seconds: u64) -> String {
    SystemClock.now().saturating_add(Duration::from_secs(seconds)).to_string()
}

#[test]
fn helper_gets_half_a_credit_for_an_hour() {
    let site = Site::verified();
    let account = site.account("20");
    // Streams whose clients have gone count for a moment longer.
    let server = site.server().set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "1000").start();
    let owner = server.client_with(&account.api_key);
    let agent = made(&owner, &json!({"name": "agent", "limit": 2, "scopes": ["call", "read", "manage"]}));
    let agent = (server.client_with(&agent.secret), agent);
    let terms = json!({"name": "helper", "limit": "0.5", "expires_at": in_seconds(3_600), "scopes": ["call"]});
    let helper = made(&agent.0, &terms);
    let client = server.client_with(&helper.secret);
    // Each stream costs a hundredth of a credit.
    for _ in 0..50 {
        assert_eq!(client.open(STREAM).status, 200);
    }
    let refused = client.get(BASE).expect(402);
    let body = refused.json();
    assert_eq!(refused.error(), "key_budget_exhausted");
    assert_eq!((body["limit"].to_string(), body["limit_remaining"].to_string()), ("0.5".to_owned(), "0".to_owned()));
    assert_eq!(balance(&owner), "19.5", "the account has plenty");
    let of_agent = owner.get(&agent.1.path()).expect(200).json()["data"].clone();
    assert_eq!(of_agent["limit_remaining"].to_string(), "1.5", "what the helper spends counts for the agent");
    assert_eq!(of_agent["usage"].to_string(), "0", "the agent itself used nothing");

    // The agent lifts the limit of the helper: its own still holds.
    let _ = change(&agent.0, &helper, &json!({"limit": null})).expect(200);
    for _ in 0..150 {
        assert_eq!(client.open(STREAM).status, 200);
    }
    assert_eq!(client.get(BASE).expect(402).error(), "key_budget_exhausted");
    assert_eq!(agent.0.get(BASE).expect(402).error(), "key_budget_exhausted");
    assert_eq!(owner.get(BASE).status, 200);
}

#[test]
fn key_expires_by_itself_and_its_stream_ends() {
    let (_site, account, server) =
        Site::serving_with("2", |server| server.set("METERING_GATEWAY__STREAM_CHECK", "100ms"));
    let owner = server.client_with(&account.api_key);
    let key = made(&owner, &json!({"expires_at": in_seconds(3)}));
    let client = server.client_with(&key.secret);
    let stream = client.open(STREAM);
    assert_eq!((client.get(BASE).status, stream.status), (200, 200));
    until("the key has expired", || client.get("/credits/balance").status == 401);
    let refused = client.get(BASE).expect(401);
    assert_eq!(refused.error(), "key_expired", "{}", refused.text());
    // Returns when the server ends the stream.
    let _ = stream.finish();
    assert_eq!(owner.get(&key.path()).expect(200).json()["data"]["state"], "expired");
    let _ = change(&owner, &key, &json!({"expires_at": null})).expect(200);
    let _ = client.get(BASE).expect(200);
}

#[test]
fn what_stops_a_key_stops_all_below_it() {
    let (_site, account, server) =
        Site::serving_with("2", |server| server.set("METERING_GATEWAY__STREAM_CHECK", "100ms"));
    let owner = server.client_with(&account.api_key);
    let manages = json!({"scopes": ["call", "read", "manage"]});
    let parent = made(&owner, &manages);
    let child = made(&server.client_with(&parent.secret), &manages);
    let grandchild = made(&server.client_with(&child.secret), &json!({}));
    let client = server.client_with(&grandchild.secret);
    // A switch that can be undone, then one that cannot.
    let stream = client.open(STREAM);
    let _ = change(&owner, &parent, &json!({"disabled": true})).expect(200);
    assert_eq!(client.get(BASE).expect(401).error(), "unauthorized");
    let _ = stream.finish();
    let state = |key: &super::Made| owner.get(&key.path()).expect(200).json()["data"]["state"].clone();
    assert_eq!(
        [&parent, &child, &grandchild].map(state),
        [json!("disabled"), json!("parent_inactive"), json!("parent_inactive")]
    );
    let _ = change(&owner, &parent, &json!({"disabled": false})).expect(200);
    let _ = client.get(BASE).expect(200);
    let stream = client.open(STREAM);
    let _ = owner.send("DELETE", &parent.path(), None).expect(200);
    assert_eq!(client.get(BASE).expect(401).error(), "unauthorized");
    let _ = stream.finish();
    assert_eq!(owner.get(BASE).status, 200);
}

#[test]
fn key_gives_away_no_more_than_it_has() {
    let (_site, account, server) = Site::serving("2");
    let owner = server.client_with(&account.api_key);
    let terms = json!({"scopes": ["call", "manage"], "routes": ["/mpp/snapshot/*"], "networks": ["127.0.0.0/8"],
        "expires_at": in_seconds(600), "limit": 1, "max_in_flight": 2, "requests_per_minute": 10});
    let parent = made(&owner, &terms);
    let client = server.client_with(&parent.secret);
    // terms, the field that is refused
    let table = [
        (json!({"scopes": ["read"]}), "scopes"),
        (json!({"routes": ["/mpp/*"]}), "routes"),
        (json!({"networks": ["0.0.0.0/0"]}), "networks"),
        (json!({"expires_at": in_seconds(6_000)}), "expires_at"),
    ];
    for (terms, field) in table {
        let mut body = json!({"name": "child", "scopes": ["call"]});
        body.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        let refused = client.post("/keys", &body).expect(400);
        assert!(refused.json()["fields"][field].is_string(), "{field}: {}", refused.text());
    }
    // Terms that are omitted are the parent's.
    let child = made(&client, &json!({"scopes": ["call"]}));
    let document = client.get(&child.path()).expect(200).json()["data"].clone();
    assert_eq!((&document["routes"], &document["networks"]), (&json!(["/mpp/snapshot/*"]), &json!(["127.0.0.0/8"])));
    // It can neither lift its own limit nor see its parent key.
    let lifted = client.send("PATCH", "/keys/current", Some(br#"{"limit": 100}"#));
    assert!(matches!(lifted.status, 400 | 403), "{}", lifted.text());
    let first = owner.get("/keys/current").expect(200).json()["data"]["id"].as_str().unwrap().to_owned();
    assert_eq!(client.get(&format!("/keys/{first}")).expect(404).error(), "not_found");
    let refused = server.client_with(&child.secret).get("/mpp/ethPrice").expect(403);
    assert_eq!(refused.error(), "key_scope");
}
