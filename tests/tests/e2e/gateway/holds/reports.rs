//! Complete responses: the head has the charge.

use serde_json::{Value, json};

use super::{MAX, MIN, Scene};
use crate::support::script::{chunk, chunked, json_response, last_chunk, with_length};
use crate::support::wait::until;
use crate::support::wire::balance;

#[test]
fn head_says_what_was_charged() {
    let scene = Scene::new("100");
    let usage = |tokens: &str| json_response(&format!(r#"{{"usage": {{"total_tokens": {tokens}}}}}"#));
    let gzip = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
    // route, response, charged
    let table = [
        ("/v1/chat", usage("12"), "0.012"),
        ("/v1/stream", usage("12"), "0.012"),
        ("/v1/chat", usage("5"), MIN),
        ("/v1/chat", usage("900"), MAX),
        ("/v1/debt", usage("900"), "0.9"),
        ("/v1/chat", usage("-1"), MIN),
        ("/v1/chat", usage("null"), MIN),
        ("/v1/chat", json_response("{}"), MIN),
        ("/v1/chat", json_response(""), "0"),
        ("/v1/missing/hold", json_response(""), "0"),
        ("/v1/missing/hold", with_length("204 No Content", "", ""), "0"),
        ("/v1/missing/hold", json_response(r#"{"error": {"message": "overloaded"}}"#), "0"),
        ("/v1/chat", json_response("<html>no JSON</html>"), MIN),
        ("/v1/chat", with_length("200 OK", gzip, r#"{"usage": {"total_tokens": 12}}"#), MIN),
        ("/v1/chat", with_length("429 Too Many Requests", "", r#"{"error": "slow down"}"#), "0"),
        ("/v1/missing/hold", with_length("400 Bad Request", "", r#"{"error": "no such model"}"#), "0"),
        ("/v1/chat", with_length("400 Bad Request", "", r#"{"usage": {"total_tokens": 12}}"#), "0.012"),
        ("/v1/chat", with_length("500 Oops", "", r#"{"usage": {"total_tokens": 12}}"#), "0"),
        ("/v1/missing/hold", json_response("{}"), MAX),
        ("/v1/missing/release", json_response("{}"), "0"),
        ("/v1/header", with_length("200 OK", "X-Cost: 0.2\r\n", "served"), "0.2"),
        ("/v1/header", with_length("200 OK", "X-Cost: free\r\n", "served"), MIN),
        ("/v1/header", with_length("200 OK", "", ""), MIN),
        ("/v1/bytes", with_length("200 OK", "", ""), "0"),
    ];
    for (path, response, charged) in table {
        let sent = response.as_str().unwrap().split_once("\r\n\r\n").unwrap().1.to_owned();
        let before = balance(&scene.client());
        let received = scene.call(path, std::slice::from_ref(&response));
        let context = format!("{path} {response}: {:?}", received.headers);
        assert_eq!(received.text(), sent, "{context}");
        assert_eq!(received.header("x-bds-credit-charged"), Some(charged), "{context}");
        assert_eq!(received.header("x-bds-credit-held"), None, "{context}");
        let after = balance(&scene.client());
        assert_eq!(received.header("x-bds-credit-balance"), Some(&*after), "{context}");
        let (before, after): (f64, f64) = (before.parse().unwrap(), after.parse().unwrap());
        assert!((before - after - charged.parse::<f64>().unwrap()).abs() < 1e-9, "{context}");
        let document = scene.client().get(&format!("/requests/{}", received.header("x-bds-request-id").unwrap()));
        assert_eq!(document.member("charged"), charged, "{context}");
    }
}

#[test]
fn upstream_is_asked_for_what_can_be_read() {
    let scene = Scene::new("10");
    let client = scene.client().with_header("Accept-Encoding", "gzip, br");
    // route, in the head, not in the head
    let table = [
        ("/v1/chat", "accept-encoding: identity\r\n", "gzip"),
        ("/v1/bytes", "accept-encoding: identity\r\n", "gzip"),
        ("/v1/header", "te: trailers\r\n", "identity"),
    ];
    for (path, present, absent) in table {
        let _ = client.post(path, &json!({"steps": [json_response("{}")]})).expect(200);
        let head = scene.upstream.last_head();
        assert!(head.contains(present) && !head.contains(absent), "{path}: {head}");
    }
}

#[test]
fn large_body_is_read_as_it_passes() {
    let scene = Scene::new("10");
    let piece = format!("8000\r\n{}\r\n", "x".repeat(32_768));
    let head = chunked("Content-Type: application/json\r\n");
    let usage = chunk(r#""], "usage": {"total_tokens": 40}}"#);
    // Four images, 11 MB.
    let steps = [head.clone(), chunk(r#"{"data": [""#), json!([piece, 336]), usage, last_chunk("")];
    let received = scene.call("/v1/missing/hold", &steps).expect(200);
    assert!(received.body.len() > 11_000_000);
    let settled = scene.client().get(&format!("/requests/{}", received.header("x-bds-request-id").unwrap()));
    assert_eq!(settled.expect(200).member("charged"), "0.04");
    // 300 embeddings of 3,072 numbers.
    let embedding = format!("[{}0],", "0.0123456789,".repeat(3_071));
    let embedding = format!("{:x}\r\n{embedding}\r\n", embedding.len());
    let usage = chunk(r#"[]], "usage": {"total_tokens": 40}}"#);
    let steps = [head, chunk(r#"{"data": ["#), json!([embedding, 300]), usage, last_chunk("")];
    let raw = scene.call_raw("/v1/missing/hold", &steps);
    let end = &raw[raw.len() - 200..];
    assert!(end.contains("x-bds-credit-charged: 0.04\r\n"), "{end}");
}

#[test]
fn json_that_stalls_costs_nothing() {
    let scene = Scene::with("1", |server| server.set("METERING_GATEWAY__UPSTREAM_TIMEOUT", "500ms"));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"usage\":";
    for path in ["/v1/chat", "/v1/stream"] {
        let refused = scene.call(path, &[json!(head), Value::Null]).expect(504);
        assert_eq!(refused.error(), "upstream_timeout", "{path}");
        assert_eq!(refused.header("x-bds-credit-charged"), Some("0"), "{path}");
    }
    assert_eq!(balance(&scene.client()), "1");
}

#[test]
fn request_that_is_not_served_costs_nothing() {
    let scene = Scene::new("1");
    let broken = json!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"usage\":");
    // response, status
    let table = [
        (with_length("502 Bad Gateway", "", "no"), 502),
        (with_length("503 Service Unavailable", "", "no"), 503),
        (with_length("504 Gateway Timeout", "", "no"), 504),
        (json!(""), 502),
        (json!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n"), 0),
        (broken, 502),
    ];
    for (response, status) in table {
        for path in ["/v1/chat", "/v1/stream"] {
            let body = json!({"steps": [response]}).to_string();
            let received = scene.client().try_send("POST", path, Some(body.as_bytes()));
            if let Ok(received) = received {
                assert_eq!(received.status, status, "{path} {response}");
                assert_eq!(received.header("x-bds-credit-charged"), Some("0"), "{path} {response}");
            } else {
                assert_eq!(status, 0, "{path} {response}");
            }
            until("the hold is released", || balance(&scene.client()) == "1");
        }
    }
    let activity = scene.client().get("/credits/usage").expect(200).text();
    assert!(activity.contains("hold_released"), "{activity}");
}
