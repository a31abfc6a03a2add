//! The life of a key: made, listed, changed, used, deleted.

use metering_tests::site::Site;
use serde_json::{Value, json};

use super::{Made, change, made};
use crate::support::wire::BASE;

#[test]
fn key_is_made_listed_changed_and_deleted() {
    let site = Site::verified();
    let (account, other) = (site.account("2"), site.account("2"));
    let server = site.server().start();
    let (client, stranger) = (server.client_with(&account.api_key), server.client_with(&other.api_key));
    let terms = json!({"name": "research", "limit": "0.5", "limit_reset": "daily", "routes": ["/mpp/*"],
        "requests_per_minute": 30, "tokens_per_minute": 5000, "max_in_flight": 4});
    let response = client.post("/keys", &terms).expect(201);
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let (key, document) = (Made::of(&response), response.json()["data"].clone());
    let expected = json!({"name": "research", "state": "active", "disabled": false, "limit_reset": "daily",
        "routes": ["/mpp/*"], "networks": [], "scopes": ["call", "read"], "requests_per_minute": 30,
        "requests_per_day": 0, "tokens_per_minute": 5000, "max_in_flight": 4, "expires_at": null, "last_used_at": null});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&document[name], value, "{name}");
    }
    assert_eq!(document["limit"].to_string(), "0.5");
    assert_eq!(document["limit_remaining"].to_string(), "0.5");

    let child = server.client_with(&key.secret);
    let charged = child.get(BASE).expect(200);
    assert_eq!(charged.header("x-bds-credit-balance"), Some("1.9998611111"), "the credits are the account's");
    let seen = client.get(&key.path()).expect(200).json()["data"].clone();
    assert_eq!(seen["usage"].to_string(), "0.0001388889");
    assert_eq!(seen["limit_remaining"].to_string(), "0.4998611111");
    assert_eq!(child.get("/keys/current").expect(200).json()["data"], seen, "its own view of itself");

    let listed = client.get("/keys").expect(200).json();
    let ids: Vec<_> = listed["data"].as_array().unwrap().iter().map(|key| key["id"].clone()).collect();
    let first = client.get("/keys/current").expect(200).json()["data"].clone();
    assert_eq!((json!(ids), &listed["next"]), (json!([first["id"], key.id]), &Value::Null));
    assert_eq!(seen["parent_id"], first["id"]);

    // Keys of another account do not exist.
    for (method, path) in [("GET", key.path()), ("PATCH", key.path()), ("DELETE", key.path())] {
        assert_eq!(stranger.send(method, &path, Some(b"{}")).expect(404).error(), "not_found", "{method}");
    }
    let deleted = client.send("DELETE", &key.path(), None).expect(200).json();
    assert_eq!(deleted, json!({"deleted": true}));
    assert_eq!(child.get(BASE).expect(401).error(), "unauthorized");
    assert_eq!(client.get(&key.path()).expect(404).error(), "not_found");
    assert_eq!(
        client.send("DELETE", "/keys/current", None).expect(409).error(),
        "conflict",
        "an account keeps its first"
    );
    assert!(!server.log().contains("sk_live_"));
}

#[test]
fn wrong_fields_are_named() {
    let (_site, account, server) = Site::serving("2");
    let client = server.client_with(&account.api_key);
    // body, the field that is named
    let table = [
        (r#"{}"#, "name"),
        (r#"{"name": ""}"#, "name"),
        (r#"{"name": "a", "limits": 1}"#, "limits"),
        (r#"{"name": "a", "limit": "much"}"#, "limit"),
        (r#"{"name": "a", "limit": -1}"#, "limit"),
        (r#"{"name": "a", "limit_reset": "daily"}"#, "limit_reset"),
        (r#"{"name": "a", "limit": 1, "limit_reset": "hourly"}"#, "limit_reset"),
        (r#"{"name": "a", "expires_at": "tomorrow"}"#, "expires_at"),
        (r#"{"name": "a", "expires_at": "2020-01-01T00:00:00Z"}"#, "expires_at"),
        (r#"{"name": "a", "scopes": []}"#, "scopes"),
        (r#"{"name": "a", "scopes": ["admin"]}"#, "scopes"),
        (r#"{"name": "a", "routes": ["/nothing/*"]}"#, "routes"),
        (r#"{"name": "a", "networks": ["10.0.0.0/33"]}"#, "networks"),
        (r#"{"name": "a", "requests_per_minute": -1}"#, "requests_per_minute"),
    ];
    for (body, field) in table {
        let refused = client.send("POST", "/keys", Some(body.as_bytes())).expect(400);
        assert_eq!(refused.error(), "validation_failed", "{body}");
        assert!(refused.json()["fields"][field].is_string(), "{body}: {}", refused.text());
    }
    assert_eq!(client.send("POST", "/keys", Some(b"{")).expect(400).error(), "invalid_json");
    for query in ["limit=0", "limit=101", "limit=x", "after=x", "limit=1&limit=2"] {
        assert_eq!(client.get(&format!("/keys?{query}")).expect(400).error(), "validation_failed", "{query}");
    }
    assert_eq!(client.get("/keys").expect(200).json()["data"].as_array().unwrap().len(), 1, "nothing was made");
    // Without a live key the response has no other information, whatever else is wrong.
    for anonymous in [server.client(), server.client().with_key(&"x".repeat(46))] {
        for (method, path) in [
            ("POST", "/keys"),
            ("GET", "/keys?limit=x"),
            ("PATCH", "/keys/x"),
            ("DELETE", "/keys/x"),
            ("POST", "/keys/x/rotate"),
        ] {
            assert_eq!(anonymous.send(method, path, Some(b"{")).expect(401).error(), "unauthorized", "{method} {path}");
        }
    }
}

#[test]
fn other_methods_are_refused_with_those_that_exist() {
    let site = Site::new();
    let server = site.server().start();
    // method, path, the methods that exist
    let table = [
        ("DELETE", "/keys", "POST, GET, HEAD"),
        ("POST", "/keys/current", "GET, HEAD, PATCH, DELETE"),
        ("PUT", "/keys/key_0123456789abcdef0123", "GET, HEAD, PATCH, DELETE"),
        ("GET", "/keys/leaked", "POST"),
        ("GET", "/keys/current/rotate", "POST"),
    ];
    for (method, path, allowed) in table {
        let refused = server.client().send(method, path, None).expect(405);
        assert_eq!(refused.header("allow"), Some(allowed), "{method} {path}");
    }
}

#[test]
fn keys_are_listed_in_parts_and_their_number_is_limited() {
    let (_site, account, server) =
        Site::serving_with("2", |server| server.set("METERING_LIMITS__MAX_KEYS_PER_ACCOUNT", "6"));
    let client = server.client_with(&account.api_key);
    let made: Vec<_> = (0..5).map(|_| made(&client, &json!({}))).collect();
    assert_eq!(client.post("/keys", &json!({"name": "one more"})).expect(409).error(), "conflict");
    let (mut ids, mut target) = (Vec::new(), "/keys?limit=2".to_owned());
    loop {
        let part = client.get(&target).expect(200).json();
        assert!(part["data"].as_array().unwrap().len() <= 2);
        ids.extend(part["data"].as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap().to_owned()));
        match part["next"].as_str() {
            Some(next) => target = format!("/keys?limit=2&after={next}"),
            None => break,
        }
    }
    assert_eq!(ids[1..], made.iter().map(|key| key.id.clone()).collect::<Vec<_>>());
    let _ = client.send("DELETE", &made[0].path(), None).expect(200);
    let _ = client.post("/keys", &json!({"name": "one more"})).expect(201);
}

#[test]
fn changes_of_keys_are_rate_limited_for_each_key() {
    let site = Site::new();
    let (account, other) = (site.account("2"), site.account("2"));
    let server = site.server().set("METERING_LIMITS__KEY_CHANGES_PER_KEY", "2/1m").start();
    let client = server.client_with(&account.api_key);
    let key = made(&client, &json!({"scopes": ["manage"]}));
    let child = server.client_with(&key.secret);
    let _ = child.send("PATCH", "/keys/current", Some(br#"{"name": "b"}"#)).expect(200);
    let _ = change(&client, &key, &json!({"name": "c"})).expect(200);
    let _ = child.send("POST", &format!("{}/rotate", key.path()), None).expect(200);
    let refused = client.send("DELETE", &key.path(), None).expect(429);
    assert_eq!(refused.error(), "rate_limited");
    assert!(refused.header("retry-after").is_some());
    let _ = made(&server.client_with(&other.api_key), &json!({}));
}

#[test]
fn usage_names_the_key() {
    let (_site, account, server) = Site::serving("2");
    let client = server.client_with(&account.api_key);
    let response = client.post("/keys", &json!({"name": "=cmd()", "limit": 1})).expect(201);
    let key = Made::of(&response);
    for client in [&client, &server.client_with(&key.secret), &server.client_with(&key.secret)] {
        let _ = client.get(BASE).expect(200);
    }
    let summary = client.get("/credits/usage/summary").expect(200).json();
    let of_key = summary["by_key"].as_array().unwrap().iter().find(|entry| entry["key_id"] == json!(key.id));
    assert_eq!(of_key.unwrap()["call_count"], 2, "{summary}");
    let file = client.get("/credits/usage.csv").expect(200).text();
    assert!(file.starts_with("day,route,method,source,calls,credits,key_id,key_name,model\r\n"), "{file}");
    assert!(file.contains(&format!(",direct,2,0.0002777778,{},'=cmd(),\r\n", key.id)), "{file}");
}
