//! Responses that are forwarded as they arrive: their trailers have the charge.

use std::slice::from_ref;

use metering_tests::response::Response;
use serde_json::{Value, json};

use super::{MAX, MIN, Scene};
use crate::support::script::{chunk, chunked, event, events_head, json_response, last_chunk, with_length};
use crate::support::wire::balance;

/// The value of a header or trailer in a raw response.
fn value<'r>(raw: &'r str, name: &str) -> Option<&'r str> {
    raw.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn trailers_say_what_was_charged() {
    let scene = Scene::new("100");
    let openai = [
        events_head(),
        event(r#"{"choices": [{"delta": {"content": "Hi"}}], "usage": null}"#),
        event(r#"{"choices": [], "usage": {"prompt_tokens": 4, "total_tokens": 42}}"#),
        event("[DONE]"),
        last_chunk(""),
    ];
    let claude = [
        events_head(),
        chunk(
            "event: message_start\ndata: {\"message\": {\"usage\": {\"input_tokens\": 30, \"output_tokens\": 1}}}\n\n",
        ),
        chunk("event: content_block_delta\ndata: {\"delta\": {\"text\": \"Hi\"}}\n\n"),
        chunk("event: message_delta\ndata: {\"usage\": {\"output_tokens\": 12}}\n\n"),
        last_chunk(""),
    ];
    let lines = [
        chunked("Content-Type: application/x-ndjson\r\n"),
        chunk("{\"a\": 1}\n"),
        chunk("{\"usage\": {\"total_tokens\": 17}}\n"),
        last_chunk(""),
    ];
    let no_report = [events_head(), event("{}"), last_chunk("")];
    let in_trailer =
        [chunked("Trailer: X-Cost, X-Other\r\n"), chunk("served"), last_chunk("X-Cost: 0.3\r\nX-Other: 1\r\n")];
    let none_in_trailer = [chunked(""), chunk("served"), last_chunk("")];
    let unreadable = [chunked(""), chunk("served"), last_chunk("X-Cost: much\r\n")];
    let bytes = [chunked(""), chunk(&"b".repeat(1_000)), chunk(&"b".repeat(500)), last_chunk("")];
    let with_known_length = [with_length("200 OK", "", &"b".repeat(1_500))];
    // route, response, charged
    let table: [(&str, &[Value], &str); 12] = [
        ("/v1/chat", &openai, "0.042"),
        ("/v1/stream", &openai, "0.042"),
        ("/v1/claude", &claude, "0.15"),
        ("/v1/chat", &lines, "0.017"),
        ("/v1/chat", &no_report, MIN),
        ("/v1/missing/hold", &no_report, MAX),
        ("/v1/missing/release", &no_report, "0"),
        ("/v1/header", &in_trailer, "0.3"),
        ("/v1/header", &none_in_trailer, MIN),
        ("/v1/header", &unreadable, MIN),
        ("/v1/bytes", &bytes, "0.015"),
        ("/v1/bytes", &with_known_length, "0.015"),
    ];
    for (path, steps, charged) in table {
        let raw = scene.call_raw(path, steps);
        let (head, body) = raw.split_once("\r\n\r\n").unwrap();
        let context = format!("{path} {raw}");
        // A response can end before its head is sent. Then the head has the charge, too.
        match value(head, "x-bds-credit-held") {
            Some(held) => assert_eq!((held, value(head, "x-bds-credit-charged")), (MAX, None), "{context}"),
            None => assert_eq!(value(head, "x-bds-credit-charged"), Some(charged), "{context}"),
        }
        assert_eq!(value(body, "x-bds-credit-charged"), Some(charged), "{context}");
        assert_eq!(value(body, "x-bds-credit-balance"), Some(&*balance(&scene.client())), "{context}");
        assert!(head.contains("trailer: x-bds-credit-balance, x-bds-credit-charged"), "{context}");
        // The upstream's report of the cost is not forwarded.
        assert!(value(body, "x-cost").is_none() && !head.contains("X-Cost"), "{context}");
        assert_eq!(value(body, "x-other").is_some(), head.contains("X-Other"), "{context}");
        let id = value(head, "x-bds-request-id").unwrap();
        let document = scene.client().get(&format!("/requests/{id}")).expect(200);
        assert_eq!(document.member("charged"), charged, "{context}");
        // Without `TE: trailers`, the same body ends without trailers.
        let plain = scene.call(path, steps).expect(200);
        assert_eq!(plain.header("trailer"), None, "{context}");
        let settled = scene.client().get(&format!("/requests/{}", plain.header("x-bds-request-id").unwrap()));
        assert_eq!(settled.expect(200).member("charged"), charged, "{context}");
    }
}

#[test]
fn pieces_are_passed_on_as_they_arrive() {
    let scene = Scene::new("1");
    let usage = event(r#"{"usage": {"total_tokens": 20}}"#);
    let steps = [events_head(), event("first"), Value::Null, usage, last_chunk("")];
    let request = super::request(&scene.account.api_key, "/v1/stream", &steps, "");
    let mut stream = metering_tests::client::connect(scene.server.address()).unwrap();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut raw = Vec::new();
    while !String::from_utf8_lossy(&raw).contains("data: first\n\n") {
        let mut piece = [0; 1_024];
        let count = std::io::Read::read(&mut stream, &mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&raw));
        raw.extend_from_slice(&piece[..count]);
    }
    scene.upstream.release();
    raw.extend(metering_tests::client::read_all(&mut stream).unwrap());
    let response = Response::parse(&raw).unwrap().expect(200);
    assert!(response.text().ends_with("data: {\"usage\": {\"total_tokens\": 20}}\n\n"), "{}", response.text());
    assert_eq!(balance(&scene.client()), "0.98");
}

#[test]
fn stream_route_serves_json_too() {
    let scene = Scene::new("1");
    let raw = scene.call_raw("/v1/stream", &[json_response(r#"{"usage": {"total_tokens": 20}}"#)]);
    assert_eq!(value(&raw, "x-bds-credit-charged"), Some("0.02"), "{raw}");
    assert!(!raw.contains("trailer:"), "{raw}");
    assert_eq!(json!(balance(&scene.client())), json!("0.98"));
}

#[test]
fn failures_in_a_stream_cost_what_was_delivered() {
    let scene = Scene::new("10");
    let error = event(r#"{"error": {"message": "overloaded"}}"#);
    let failed =
        chunk("event: response.failed\ndata: {\"response\": {\"error\": {\"code\": \"x\"}, \"usage\": null}}\n\n");
    let later_zero = [event(r#"{"usage": {"total_tokens": 12}}"#), event(r#"{"usage": {"total_tokens": 0}}"#)];
    // events, charged
    let table: [(&[Value], &str); 4] = [
        (from_ref(&error), "0"),
        (&[failed], "0"),
        (&later_zero, "0.012"),
        (&[later_zero[0].clone(), error.clone()], "0.012"),
    ];
    for (events, charged) in table {
        let mut steps = vec![events_head()];
        steps.extend_from_slice(events);
        steps.push(last_chunk(""));
        let raw = scene.call_raw("/v1/missing/hold", &steps);
        let body = raw.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(value(body, "x-bds-credit-charged"), Some(charged), "{raw}");
    }
}

#[test]
fn json_array_is_passed_on_element_by_element() {
    let scene = Scene::new("1");
    let head = chunked("Content-Type: application/json\r\n");
    let element = |tokens: u32| format!(r#"{{"usageMetadata": {{"totalTokenCount": {tokens}}}}}"#);
    let (first, last) = (chunk(&format!("[{}", element(10))), chunk(&format!(",{}]", element(40))));
    let steps = [head, first, Value::Null, last, last_chunk("")];
    let request = super::request(&scene.account.api_key, "/v1/gemini", &steps, "TE: trailers\r\n");
    let mut stream = metering_tests::client::connect(scene.server.address()).unwrap();
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut raw = Vec::new();
    // The upstream sends the second element only when the first has arrived.
    while !String::from_utf8_lossy(&raw).contains("\"totalTokenCount\": 10") {
        let mut piece = [0; 1_024];
        let count = std::io::Read::read(&mut stream, &mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&raw));
        raw.extend_from_slice(&piece[..count]);
    }
    scene.upstream.release();
    raw.extend(metering_tests::client::read_all(&mut stream).unwrap());
    let raw = String::from_utf8(raw).unwrap();
    assert_eq!(value(raw.split_once("\r\n\r\n").unwrap().1, "x-bds-credit-charged"), Some("0.04"), "{raw}");
}

#[test]
fn usage_that_the_client_did_not_ask_for_is_hidden_and_charged() {
    let scene = Scene::new("1");
    let text = event(r#"{"choices": [{"delta": {"content": "Hi"}}]}"#);
    let usage = event(r#"{"choices": [], "usage": {"total_tokens": 40}}"#);
    let steps = [events_head(), text, usage, event("[DONE]"), last_chunk("")];
    // what the client requests, whether it gets the usage
    let table = [(json!({}), false), (json!({"include_usage": true}), true)];
    for (options, gets_usage) in table {
        let body = json!({"stream": true, "stream_options": options, "steps": steps});
        let received = scene.client().post("/v1/asking", &body).expect(200);
        let text = received.text();
        assert_eq!(text.contains("total_tokens"), gets_usage, "{text}");
        assert!(text.contains("\"Hi\"") && text.ends_with("data: [DONE]\n\n"), "{text}");
        let settled = scene.client().get(&format!("/requests/{}", received.header("x-bds-request-id").unwrap()));
        assert_eq!(settled.expect(200).member("charged"), "0.04");
    }
}
