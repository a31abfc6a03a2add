//! How much is held, and who may hold it.

use std::thread;

use serde_json::{Value, json};

use super::{MAX, Scene};
use crate::keys::made;
use crate::support::script::{event, events_head, json_response, last_chunk};
use crate::support::wait::until;
use crate::support::wire::balance;

fn usage(tokens: u32) -> Value {
    json_response(&format!(r#"{{"usage": {{"total_tokens": {tokens}}}}}"#))
}

#[test]
fn estimate_is_held_while_the_response_arrives() {
    let scene = Scene::new("1");
    let steps = [events_head(), event("{}"), Value::Null, event(r#"{"usage": {"total_tokens": 40}}"#), last_chunk("")];
    let body = json!({"steps": steps, "max_tokens": 100}).to_string();
    let client = scene.client();
    let sent = thread::spawn(move || client.send("POST", "/v1/estimate", Some(body.as_bytes())));
    scene.upstream.wait_for_requests(1);
    let account = scene.client().get("/credits/balance").expect(200);
    assert_eq!((account.member("credit_balance"), account.member("credits_held")), ("0.9".into(), "0.1".into()));
    let open = scene.client().get("/requests").expect(200).json();
    assert_eq!((&open["data"][0]["state"], &open["data"][0]["held"]), (&json!("held"), &json!(0.1)), "{open}");
    scene.upstream.release();
    let response = sent.join().unwrap().expect(200);
    assert_eq!(response.header("x-bds-credit-held"), Some("0.1"));
    assert_eq!(response.header("x-bds-credit-charged"), None);
    let document = scene.client().get(&format!("/requests/{}", response.header("x-bds-request-id").unwrap()));
    assert_eq!((document.member("charged"), document.member("released")), ("0.04".into(), "0.06".into()));
    assert_eq!(scene.client().get("/requests").expect(200).json()["data"], json!([]));
    assert_eq!(balance(&scene.client()), "0.96");
}

#[test]
fn balance_must_cover_the_hold() {
    let scene = Scene::new("0.3");
    let refused = scene.call("/v1/chat", &[usage(1)]).expect(402);
    assert_eq!((refused.error(), refused.member("required")), ("insufficient_credits".to_owned(), MAX.to_owned()));
    assert_eq!(scene.upstream.requests(), 0);
    let body = json!({"steps": [usage(50)], "max_tokens": 200});
    let _ = scene.client().post("/v1/estimate", &body).expect(200);
    assert_eq!(balance(&scene.client()), "0.25");
    let _ = scene.client().post("/v1/estimate", &json!({"steps": [], "max_tokens": 251})).expect(402);
}

#[test]
fn budget_of_a_key_counts_holds_and_gets_back_what_was_not_used() {
    let scene = Scene::new("10");
    let key = made(&scene.client(), &json!({"limit": "0.6", "scopes": ["call", "read"]}));
    let client = scene.server.client_with(&key.secret);
    let _ = client.post("/v1/chat", &json!({"steps": [usage(80)]})).expect(200);
    let _ = client.post("/v1/chat", &json!({"steps": [usage(80)]})).expect(200);
    let refused = client.post("/v1/chat", &json!({"steps": [usage(80)]})).expect(402);
    assert_eq!(refused.error(), "key_budget_exhausted");
    let _ = client.post("/v1/estimate", &json!({"steps": [usage(80)], "max_tokens": 100})).expect(200);
    assert_eq!(balance(&scene.client()), "9.76");
}

#[test]
fn requests_at_once_never_hold_more_than_the_balance() {
    let scene = Scene::new("5");
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let client = scene.client();
            thread::spawn(move || client.post("/v1/chat", &json!({"steps": [Value::Null, usage(20)]})).status)
        })
        .collect();
    scene.upstream.wait_for_requests(10);
    until("the others are refused", || calls.iter().filter(|call| call.is_finished()).count() == 54);
    assert_eq!((scene.upstream.requests(), balance(&scene.client())), (10, "0".to_owned()));
    scene.upstream.release();
    let statuses: Vec<u16> = calls.into_iter().map(|call| call.join().unwrap()).collect();
    let with = |status| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((with(200), with(402)), (10, 54), "{statuses:?}");
    assert_eq!(balance(&scene.client()), "4.8");
}

#[test]
fn idempotency_key_holds_once() {
    let scene = Scene::new("1");
    let client = scene.client().with_header("Idempotency-Key", "8e03978e-40d5");
    let first = client.post("/v1/chat", &json!({"steps": [usage(20)]})).expect(200);
    assert_eq!(first.header("x-bds-credit-charged"), Some("0.02"));
    until("the key is used up", || client.post("/v1/chat", &json!({"steps": [usage(20)]})).status == 409);
    assert_eq!(balance(&scene.client()), "0.98");
    // One that was not served can be retried, and is held again.
    let client = scene.client().with_header("Idempotency-Key", "another-one");
    let unavailable = "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let _ = client.post("/v1/chat", &json!({"steps": [unavailable]})).expect(503);
    let retried = client.post("/v1/chat", &json!({"steps": [usage(30)]})).expect(200);
    assert_eq!(retried.header("x-bds-credit-charged"), Some("0.03"));
    assert_eq!(balance(&scene.client()), "0.95");
}

#[test]
fn requests_of_others_are_not_found() {
    let scene = Scene::new("1");
    let other = scene.site.account("1");
    let response = scene.call("/v1/chat", &[usage(20)]).expect(200);
    let path = format!("/requests/{}", response.header("x-bds-request-id").unwrap());
    let other = scene.server.client_with(&other.api_key);
    assert_eq!(other.get(&path).expect(404).error(), "not_found");
    assert_eq!(other.get("/requests").expect(200).json(), json!({"data": []}));
    assert_eq!(scene.server.client().get(&path).expect(401).error(), "unauthorized");
    for unknown in ["/requests/req_00000000000000000000000000000000", "/requests/17"] {
        assert_eq!(scene.client().get(unknown).expect(404).error(), "not_found");
    }
    // A key that only calls finds its own requests.
    let key = made(&scene.client(), &json!({"scopes": ["call"]}));
    let caller = scene.server.client_with(&key.secret);
    let own = caller.post("/v1/chat", &json!({"steps": [usage(20)]})).expect(200);
    let _ = caller.get(&format!("/requests/{}", own.header("x-bds-request-id").unwrap())).expect(200);
    assert_eq!(caller.get(&path).expect(404).error(), "not_found");
}
