//! Retries that join an earlier attempt, and errors that the clients of a route can read.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use metering_tests::client::{connect, exchange};
use serde_json::{Value, json};

use super::{Scene, request};
use crate::support::script::{chunk, events_head, json_response};
use crate::support::wire::balance;

const RETRY: &str = "X-Stainless-Retry-Count: 1\r\n";

/// Sends a request and leaves the connection open.
fn send(scene: &Scene, path: &str, steps: &[Value], headers: &str) -> TcpStream {
    let mut stream = connect(scene.server.address()).unwrap();
    stream.write_all(request(&scene.account.api_key, path, steps, headers).as_bytes()).unwrap();
    stream
}

/// Sends a request and reads the whole response.
fn ask(scene: &Scene, key: &str, path: &str, steps: &[Value], headers: &str) -> String {
    let raw = exchange(scene.server.address(), request(key, path, steps, headers).as_bytes()).unwrap();
    String::from_utf8(raw).unwrap()
}

fn is_replayed(response: &str) -> bool {
    response.to_ascii_lowercase().contains("x-bds-replayed: true\r\n")
}

/// A client with a timeout calls three times.
#[test]
fn client_that_times_out_pays_once() {
    for (path, cost) in [("/v1/replay/usage", "0.96"), ("/v1/replay/fixed", "0.9")] {
        let scene = Scene::new("1");
        let steps = [Value::Null, json_response(r#"{"usage": {"total_tokens": 40}}"#)];
        drop(send(&scene, path, &steps, "X-Stainless-Retry-Count: 0\r\n"));
        scene.upstream.wait_for_requests(1);
        drop(send(&scene, path, &steps, RETRY));
        std::thread::sleep(Duration::from_millis(50));
        let last = send(&scene, path, &steps, "X-Stainless-Retry-Count: 2\r\n");
        scene.upstream.release();
        let mut last = last;
        let response = String::from_utf8(metering_tests::client::read_all(&mut last).unwrap()).unwrap();
        assert!(response.contains("total_tokens") && is_replayed(&response), "{response}");
        assert_eq!((scene.upstream.requests(), balance(&scene.client())), (1, cost.to_owned()), "{path}");
    }
}

#[test]
fn response_is_there_after_a_cut_for_the_same_request_only() {
    let scene = Scene::new("2");
    let steps = [Value::Null, json_response(r#"{"usage": {"total_tokens": 40}}"#)];
    drop(send(&scene, "/v1/replay/fixed", &steps, ""));
    scene.upstream.wait_for_requests(1);
    scene.upstream.release();
    let key = &scene.account.api_key;
    let other_body = [json_response(r#"{"usage": {"total_tokens": 41}}"#)];
    assert!(!is_replayed(&ask(&scene, key, "/v1/replay/fixed", &other_body, RETRY)));
    let other_key = crate::keys::made(&scene.client(), &json!({"name": "other"}));
    assert!(!is_replayed(&ask(&scene, &other_key.secret, "/v1/replay/fixed", &steps, RETRY)));
    assert!(!is_replayed(&ask(&scene, key, "/v1/replay/fixed", &steps, "")), "it is not marked as a retry");
    assert_eq!(scene.upstream.requests(), 4);
    assert!(is_replayed(&ask(&scene, key, "/v1/replay/fixed", &steps, RETRY)));
    assert_eq!((scene.upstream.requests(), balance(&scene.client())), (4, "1.6".to_owned()));
}

#[test]
fn idempotency_key_gets_the_response_again() {
    let scene = Scene::new("1");
    let steps = [json_response(r#"{"usage": {"total_tokens": 40}}"#)];
    let keyed = "Idempotency-Key: \"order-17\"\r\n";
    let first = ask(&scene, &scene.account.api_key, "/v1/replay/usage", &steps, keyed);
    let again = ask(&scene, &scene.account.api_key, "/v1/replay/usage", &steps, keyed);
    assert!(!is_replayed(&first) && is_replayed(&again), "{again}");
    assert_eq!(first.split("\r\n\r\n").last(), again.split("\r\n\r\n").last());
    assert_eq!((scene.upstream.requests(), balance(&scene.client())), (1, "0.96".to_owned()));
}

#[test]
fn without_memory_a_retry_is_an_ordinary_request() {
    let scene = Scene::with("1", |server| server.set("METERING_GATEWAY__REPLAY_BYTES", "0"));
    let steps = [json_response(r#"{"usage": {"total_tokens": 40}}"#)];
    for paid in 1..=2 {
        let response = ask(&scene, &scene.account.api_key, "/v1/replay/fixed", &steps, RETRY);
        assert!(response.starts_with("HTTP/1.1 200") && !is_replayed(&response), "{response}");
        assert_eq!(scene.upstream.requests(), paid);
    }
    assert_eq!(balance(&scene.client()), "0.8");
}

#[test]
fn errors_of_the_gateway_have_the_shape_of_their_route() {
    let scene = Scene::new("0.05");
    let client = scene.server.client_with(&scene.account.api_key);
    let unreadable = client.send("POST", "/v1/replay/fixed", Some(&vec![b'x'; 4 << 20]));
    assert_eq!(unreadable.status, 413);
    assert_eq!(unreadable.json()["error"]["type"], "request_too_large");
    assert_eq!(unreadable.header("request-id").unwrap(), unreadable.json()["request_id"]);
    let _ = scene.call("/v1/replay/stream", &[json_response("{}")]).expect(200);
    let poor = scene.call("/v1/replay/stream", &[]);
    let document = poor.json();
    assert_eq!((poor.status, &document["error"]["type"]), (402, &json!("insufficient_quota")), "{document}");
    assert!(document["plans"].is_array() && document["credit_balance"].is_number(), "{document}");
    assert!(poor.header("x-request-id").unwrap().starts_with("req_"));
}

#[test]
fn broken_stream_ends_with_an_error_event() {
    let scene = Scene::new("1");
    for path in ["/v1/replay/usage", "/v1/replay/stream"] {
        let raw = ask(&scene, &scene.account.api_key, path, &[events_head(), chunk("data: 1\n\n")], "");
        let last = raw.rsplit("data: ").next().unwrap().lines().next().unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!(last["error"]["code"], "upstream_unreachable", "{path}: {raw}");
        assert!(raw.ends_with("0\r\n\r\n"), "the body ends properly: {raw}");
    }
}
