//! The endpoints for webhooks: what they take and refuse, and whose webhooks they show.

use metering_tests::site::Site;
use serde_json::{Value, json};

use super::Hook;

#[test]
fn a_webhook_is_created_changed_and_deleted() {
    let (_site, account, server) =
        Site::serving_with("1", |server| server.set("METERING_WEBHOOKS__MAX_PER_ACCOUNT", "2"));
    let client = server.client_with(&account.api_key);
    let url = "https://hooks.example.com/a?b";
    let created = client.post("/webhooks", &json!({"url": url, "events": ["balance.low", "key.leaked"]})).expect(201);
    let webhook = Hook::of(&created);
    let document = created.json()["data"].clone();
    assert_eq!((&document["url"], &document["state"]), (&json!(url), &json!("active")));
    assert_eq!(document["events"], json!(["balance.low", "key.leaked"]));
    let mut shown = client.get(&webhook.path("")).expect(200).json()["data"].clone();
    let health = shown.as_object_mut().unwrap().remove("health").unwrap();
    assert_eq!((&health["waiting"], &health["failing_since"]), (&json!(0), &Value::Null));
    assert_eq!(shown, document);
    let patch = |body: &Value| client.send("PATCH", &webhook.path(""), Some(body.to_string().as_bytes()));
    let changed = patch(&json!({"events": null, "disabled": true})).expect(200).json()["data"].clone();
    assert_eq!((&changed["events"], &changed["state"], &changed["url"]), (&json!([]), &json!("disabled"), &json!(url)));
    let _ = client.post("/webhooks", &json!({"url": url})).expect(201);
    assert_eq!(client.post("/webhooks", &json!({"url": url})).expect(409).error(), "too_many_webhooks");
    assert_eq!(client.get("/webhooks").expect(200).json()["data"].as_array().unwrap().len(), 2);
    assert_eq!(client.send("DELETE", &webhook.path(""), None).expect(200).json(), json!({"deleted": true}));
    for (method, path) in [("GET", webhook.path("")), ("DELETE", webhook.path("")), ("POST", webhook.path("/test"))] {
        assert_eq!(client.send(method, &path, None).expect(404).error(), "webhook_not_found", "{method} {path}");
    }
    let fields = |body: &Value| client.post("/webhooks", body).expect(400).json()["fields"].clone();
    assert_eq!(fields(&json!({})), json!({"url": "is required"}));
    let both = fields(&json!({"url": "x", "events": ["balance.lo"]}));
    assert!(both["url"].is_string() && both["events"].as_str().unwrap().contains("balance.low"), "{both}");
    assert!(fields(&json!({"url": url, "events": []}))["events"].is_string());
    assert!(fields(&json!({"url": url, "event": []})).as_object().is_some_and(|fields| !fields.is_empty()));
    let rotate = client.post(&webhook.path("/rotate"), &json!({"grace_seconds": 604_801})).expect(400);
    assert!(rotate.json()["fields"]["grace_seconds"].is_string(), "{rotate:?}");
}

#[test]
fn nobody_sees_or_changes_the_webhooks_of_others() {
    let site = Site::new();
    let (owner, other) = (site.account("1"), site.account("1"));
    let server = site.server().start();
    let other_id = other.org_id.clone();
    let (owner, other) = (server.client_with(&owner.api_key), server.client_with(&other.api_key));
    let create = || Hook::of(&owner.post("/webhooks", &json!({"url": "https://hooks.example.com/"})).expect(201));
    let (webhook, second) = (create(), create());
    let delivery = owner.send("POST", &webhook.path("/test"), None).expect(202).json()["data"]["id"].clone();
    let (one, resend) = (format!("/deliveries/{delivery}"), format!("/deliveries/{delivery}/resend"));
    let shown = owner.get(&webhook.path(&one)).expect(200).json();
    let body: Value = serde_json::from_str(shown["body"].as_str().unwrap()).unwrap();
    assert_eq!((&shown["data"]["id"], &body["type"]), (&delivery, &json!("webhook.test")));
    assert_eq!(body["data"], shown["data"]["event"]["data"]);
    for (method, rest) in [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/rotate"),
        ("POST", "/test"),
        ("GET", "/deliveries"),
        ("GET", &one),
        ("POST", &resend),
    ] {
        let response = other.send(method, &webhook.path(rest), Some(b"{}")).expect(404);
        assert_eq!(response.error(), "webhook_not_found", "{method} {rest}");
    }
    assert_eq!(other.get("/webhooks").expect(200).json()["data"], json!([]));
    let events = other.get("/events").expect(200).json()["data"].as_array().unwrap().clone();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["type"], &events[0]["data"]["org_id"]), (&json!("key.created"), &json!(other_id)));
    // Another webhook of the same account has no such delivery either.
    assert_eq!(owner.get(&second.path(&one)).expect(404).error(), "delivery_not_found");
    assert_eq!(owner.send("POST", &second.path(&resend), None).expect(404).error(), "delivery_not_found");
    for wrong in ["0", "-1", "x", "9223372036854775807", "9223372036854775808"] {
        let path = webhook.path(&format!("/deliveries/{wrong}/resend"));
        assert_eq!(owner.send("POST", &path, None).expect(404).error(), "delivery_not_found", "{wrong}");
    }
    assert_eq!(owner.get("/webhooks/we_00000000000000000000000000000000").expect(404).error(), "webhook_not_found");
}

#[test]
fn lists_have_pages_and_states() {
    let (_site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    let webhook = Hook::of(&client.post("/webhooks", &json!({"url": "https://hooks.invalid/"})).expect(201));
    for _ in 0..3 {
        let _ = client.send("POST", &webhook.path("/test"), None).expect(202);
    }
    let ids = |path: &str| {
        let page = client.get(path).expect(200).json();
        let ids: Vec<_> = page["data"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
        (ids, page["next"].clone())
    };
    // The account's first key has an event too.
    for (path, count) in [(webhook.path("/deliveries"), 3), ("/events".to_owned(), 4)] {
        let (all, none) = ids(&format!("{path}?limit={count}"));
        assert_eq!((all.len(), none), (count, Value::Null), "{path}");
        let (first, next) = ids(&format!("{path}?limit=2"));
        let (rest, end) = ids(&format!("{path}?limit=2&after={}", next.as_str().unwrap()));
        assert_eq!(([first, rest].concat(), end), (all, Value::Null), "{path}");
        for wrong in ["limit=0", "limit=101", "limit=x", "after=nonsense"] {
            let refused = client.get(&format!("{path}?{wrong}")).expect(400);
            assert_eq!(refused.error(), "validation_failed", "{path}?{wrong}");
        }
    }
    assert_eq!(ids(&webhook.path("/deliveries?state=delivered")).0.len(), 0);
    assert_eq!(ids(&webhook.path("/deliveries?state=pending")).0.len(), 3);
    assert!(client.get(&webhook.path("/deliveries?state=lost")).expect(400).json()["fields"]["state"].is_string());
}

#[test]
fn the_alert_is_set_shown_and_removed() {
    let (_site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    let put = |body: &str| client.send("PUT", "/credits/alert", Some(body.as_bytes()));
    assert_eq!(client.get("/credits/alert").expect(200).json()["below"], Value::Null);
    assert_eq!(put(r#"{"below": "0.5"}"#).expect(200).member("below"), "0.5");
    assert_eq!(client.get("/credits/balance").expect(200).member("alert_below"), "0.5");
    for wrong in ["{}", r#"{"below": 0}"#, r#"{"below": "-1"}"#, r#"{"below": "x"}"#, r#"{"above": 1}"#] {
        assert_eq!(put(wrong).expect(400).error(), "validation_failed", "{wrong}");
    }
    assert_eq!(put(r#"{"below": null}"#).expect(200).member("below"), "null");
    assert_eq!(client.get("/credits/balance").expect(200).member("alert_below"), "null");
}

#[test]
fn a_service_without_webhooks_refuses_them_and_still_has_events() {
    let (_site, account, server) =
        Site::serving_with("1", |server| server.set("METERING_WEBHOOKS__MAX_PER_ACCOUNT", "0"));
    let client = server.client_with(&account.api_key);
    let refused = client.post("/webhooks", &json!({"url": "https://hooks.example.com/"})).expect(404);
    assert_eq!(refused.error(), "not_found");
    let _ = client.post("/keys", &json!({"name": "a key"})).expect(201);
    assert_eq!(client.get("/events").expect(200).json()["data"][0]["type"], "key.created");
}

#[test]
fn tests_are_limited_per_account() {
    let (_site, account, server) =
        Site::serving_with("1", |server| server.set("METERING_LIMITS__WEBHOOK_TESTS_PER_ACCOUNT", "2/1d"));
    let client = server.client_with(&account.api_key);
    let webhook = Hook::of(&client.post("/webhooks", &json!({"url": "https://hooks.invalid/"})).expect(201));
    for status in [202, 202, 429] {
        let _ = client.send("POST", &webhook.path("/test"), None).expect(status);
    }
}
