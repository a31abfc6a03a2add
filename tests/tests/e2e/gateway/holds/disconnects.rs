//! Clients that disconnect in the middle of a response: the rest is read for its report, within bounds.

use std::io::{Read, Write};
use std::net::TcpStream;

use metering_tests::client::connect;
use serde_json::{Value, json};

use super::{MIN, Scene, request};
use crate::keys::made;
use crate::support::script::{chunk, chunked, event, events_head, json_response, last_chunk};
use crate::support::wait::until;
use crate::support::wire::balance;

/// Sends a request, and reads its response until `text` has arrived.
fn read_until(scene: &Scene, api_key: &str, path: &str, steps: &[Value], text: &str) -> (TcpStream, String) {
    let mut stream = connect(scene.server.address()).unwrap();
    stream.write_all(request(api_key, path, steps, "").as_bytes()).unwrap();
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let mut piece = [0; 4_096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the response ended before {text:?}: {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
    }
    (stream, String::from_utf8(read).unwrap())
}

fn id(head: &str) -> String {
    let rest = head.split_once("x-bds-request-id: ").unwrap_or_else(|| panic!("{head}")).1;
    rest.split("\r\n").next().unwrap().to_owned()
}

fn steps() -> [Value; 6] {
    let usage = event(r#"{"usage": {"total_tokens": 40}}"#);
    [events_head(), event("first"), Value::Null, event("second"), usage, last_chunk("")]
}

#[test]
fn report_in_the_rest_is_captured() {
    let scene = Scene::new("1");
    for path in ["/v1/chat", "/v1/stream"] {
        let (stream, head) = read_until(&scene, &scene.account.api_key, path, &steps(), "first");
        drop(stream);
        scene.upstream.release();
        let document = scene.settled(&id(&head));
        assert_eq!((&document["settled_by"], &document["charged"]), (&json!("report"), &json!(0.04)), "{document}");
    }
    assert_eq!(balance(&scene.client()), "0.92");
}

#[test]
fn client_that_leaves_before_the_response_is_charged_what_it_cost() {
    let scene = Scene::new("1");
    let response = json_response(r#"{"usage": {"total_tokens": 40}}"#);
    let mut stream = connect(scene.server.address()).unwrap();
    let request = request(&scene.account.api_key, "/v1/chat", &[Value::Null, response], "");
    stream.write_all(request.as_bytes()).unwrap();
    scene.upstream.wait_for_requests(1);
    drop(stream);
    scene.upstream.release();
    until("the cost is captured", || balance(&scene.client()) == "0.96");
}

#[test]
fn rest_that_takes_too_long_is_not_awaited() {
    let scene = Scene::with("1", |server| server.set("METERING_GATEWAY__REPORT_AFTER_DISCONNECT", "300ms"));
    let (stream, head) = read_until(&scene, &scene.account.api_key, "/v1/stream", &steps(), "first");
    drop(stream);
    let document = scene.settled(&id(&head));
    // 5 bytes of data.
    assert_eq!(document["charged"].to_string(), MIN, "{document}");
}

#[test]
fn stop_button_costs_what_was_delivered() {
    let scene = Scene::with("1", |server| server.set("METERING_GATEWAY__REPORT_AFTER_DISCONNECT", "1s"));
    let text = event(r#"{"choices": [{"delta": {"content": "0123456789"}}]}"#);
    let steps = [events_head(), json!([text, 9]), event(r#"{"last": "first"}"#), Value::Null];
    let (stream, head) = read_until(&scene, &scene.account.api_key, "/v1/texts", &steps, "first");
    drop(stream);
    // 90 bytes of output, and the request.
    let request = json!({"steps": steps}).to_string().len() as f64;
    let document = scene.settled(&id(&head));
    let charged = document["charged"].as_f64().unwrap();
    assert!((charged - 0.0009 - request * 0.000_001).abs() < 1e-9, "{document}");
}

#[test]
fn beyond_the_bound_in_number_nothing_is_read_on() {
    let setting = "METERING_GATEWAY__REPORT_AFTER_DISCONNECT_REQUESTS_PER_ACCOUNT";
    let scene = Scene::with("1", |server| server.set(setting, "0"));
    let (stream, head) = read_until(&scene, &scene.account.api_key, "/v1/stream", &steps(), "first");
    drop(stream);
    let document = scene.settled(&id(&head));
    assert_eq!(document["charged"].to_string(), MIN, "{document}");
}

#[test]
fn rest_that_is_too_large_is_not_read() {
    let scene = Scene::with("1", |server| server.set("METERING_GATEWAY__REPORT_AFTER_DISCONNECT_BYTES", "1000"));
    let more = event(&"x".repeat(500));
    let steps = [events_head(), event("first"), Value::Null, json!([more, 100]), Value::from(20_000)];
    let (stream, head) = read_until(&scene, &scene.account.api_key, "/v1/stream", &steps, "first");
    drop(stream);
    // Long enough for the gateway to see that the client has gone.
    std::thread::sleep(std::time::Duration::from_millis(300));
    scene.upstream.release();
    let document = scene.settled(&id(&head));
    assert_ne!(document["state"], "held", "{document}");
}

#[test]
fn bytes_that_nobody_reads_are_not_charged() {
    let scene = Scene::new("1");
    let mut steps = vec![chunked(""), chunk(&"b".repeat(2_000)), chunk("END"), Value::Null];
    // Only a write shows that a client has gone.
    steps.extend((0..100).flat_map(|_| [chunk(&"b".repeat(400)), Value::from(100)]));
    let (stream, head) = read_until(&scene, &scene.account.api_key, "/v1/bytes", &steps, "END");
    drop(stream);
    scene.upstream.release();
    let document = scene.settled(&id(&head));
    assert_eq!(document["settled_by"], "report", "{document}");
    let charged = document["charged"].as_f64().unwrap();
    assert!((0.02003..0.1).contains(&charged), "{document}");
}

/// A Stop button must not lock a key for as long as its rest is read.
#[test]
fn request_is_not_in_progress_when_its_client_has_gone() {
    let scene = Scene::new("1");
    let key = made(&scene.client(), &json!({"max_in_flight": 1, "scopes": ["call", "read"]}));
    let client = scene.server.client_with(&key.secret);
    // On a stream route, a comment finds out that the client has gone.
    let (stream, head) = read_until(&scene, &key.secret, "/v1/stream", &steps(), "first");
    drop(stream);
    let other = json!({"steps": [json_response("{}")]});
    until("the slot is free", || client.post("/v1/chat", &other).status == 200);
    scene.upstream.release();
    let _ = scene.settled(&id(&head));
}

#[test]
fn stream_is_not_open_when_its_client_has_gone() {
    let scene = Scene::with("1", |server| server.set("METERING_GATEWAY__MAX_STREAMS_PER_KEY", "1"));
    let (stream, head) = read_until(&scene, &scene.account.api_key, "/v1/stream", &steps(), "first");
    drop(stream);
    let other = [json_response("{}")];
    until("the slot is free", || scene.call("/v1/stream", &other).status == 200);
    scene.upstream.release();
    let _ = scene.settled(&id(&head));
}

#[test]
fn deleted_key_ends_its_stream_and_pays_for_it() {
    let scene = Scene::new("1");
    let key = made(&scene.client(), &json!({"scopes": ["call"]}));
    let (mut stream, head) = read_until(&scene, &key.secret, "/v1/stream", &steps(), "first");
    let _ = scene.client().send("DELETE", &key.path(), None);
    let rest = metering_tests::client::read_all(&mut stream).unwrap();
    assert!(!String::from_utf8_lossy(&rest).contains("second"));
    scene.upstream.release();
    let document = scene.settled(&id(&head));
    assert_eq!((&document["settled_by"], &document["charged"]), (&json!("report"), &json!(0.04)), "{document}");
}
