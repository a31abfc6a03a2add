//! Responses that do not end as they should: the upstream breaks off, or the server stops.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use metering_tests::client::{connect, read_all};
use serde_json::{Value, json};

use super::{MIN, Scene, request, setup};
use crate::support::script::{event, events_head, last_chunk};
use crate::support::wait::until_within;
use crate::support::wire::balance;

/// Opens a response, and waits until its first event has arrived.
fn open(scene: &Scene, path: &str, steps: &[Value]) -> (TcpStream, String) {
    let mut stream = connect(scene.server.address()).unwrap();
    stream.write_all(request(&scene.account.api_key, path, steps, "").as_bytes()).unwrap();
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("first") {
        let mut piece = [0; 4_096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..count]);
    }
    (stream, String::from_utf8(read).unwrap())
}

fn usage() -> Value {
    event(r#"{"usage": {"total_tokens": 40}}"#)
}

#[test]
fn upstream_that_breaks_off_is_paid_for_what_it_reported() {
    let scene = Scene::new("1");
    // events before the end, why the hold is settled, charged
    let table = [(vec![event("first")], "report", MIN), (vec![event("first"), usage()], "report", "0.04")];
    for (events, settled_by, charged) in table {
        let steps: Vec<_> = std::iter::once(events_head()).chain(events).collect();
        let (mut stream, head) = open(&scene, "/v1/chat", &steps);
        let rest = String::from_utf8(read_all(&mut stream).unwrap()).unwrap();
        assert!(!rest.ends_with("0\r\n\r\n"), "the client sees that the response is incomplete: {rest}");
        let id = head.split_once("x-bds-request-id: ").unwrap().1.split("\r\n").next().unwrap().to_owned();
        let document = scene.settled(&id);
        assert_eq!(document["settled_by"], settled_by, "{document}");
        assert_eq!(document["charged"].to_string(), charged, "{document}");
    }
}

#[test]
fn killed_server_leaves_a_hold_that_expires() {
    let scene = Scene::with("1", |server| server.set("METERING_GATEWAY__HOLD_LEASE", "10s"));
    let (stream, _) = open(&scene, "/v1/chat", &[events_head(), event("first"), Value::Null]);
    let Scene { site, upstream, server, account } = scene;
    server.kill();
    drop(stream);
    let server = setup(&site, &upstream).start();
    let client = server.client_with(&account.api_key);
    assert_eq!(balance(&client), "0.5", "still held");
    until_within(Duration::from_secs(90), "the hold expires", || balance(&client) != "0.5");
    assert_eq!(balance(&client), "0.99");
    let activity = client.get("/credits/usage").expect(200).text();
    assert!(activity.contains("hold_expired"), "{activity}");
    drop(server);
    site.verify();
}

#[test]
fn shutdown_waits_for_responses_and_their_reports() {
    let scene = Scene::new("1");
    let steps = [events_head(), event("first"), Value::Null, usage(), last_chunk("")];
    let (mut finishing, _) = open(&scene, "/v1/chat", &steps);
    // The streams of stream routes end immediately, but the rest is read.
    let (mut ended, _) = open(&scene, "/v1/stream", &steps);
    let Scene { site, upstream, mut server, account } = scene;
    server.terminate();
    let rest = String::from_utf8(read_all(&mut ended).unwrap()).unwrap();
    assert!(!rest.contains("total_tokens"), "{rest}");
    assert!(!server.has_exited());
    upstream.release();
    let rest = String::from_utf8(read_all(&mut finishing).unwrap()).unwrap();
    assert!(rest.contains("total_tokens") && rest.ends_with("0\r\n\r\n"), "{rest}");
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    drop(server);
    let server = setup(&site, &upstream).start();
    assert_eq!(balance(&server.client_with(&account.api_key)), "0.92");
    drop(server);
    site.verify();
}

#[test]
fn shutdown_settles_what_does_not_end_in_time() {
    let scene = Scene::with("2", |server| server.set("METERING_HTTP__SHUTDOWN_GRACE", "1s"));
    let without = [events_head(), event("first"), Value::Null];
    let with = [events_head(), event("first"), usage(), Value::Null];
    let open: Vec<_> = [("/v1/chat", &without[..]), ("/v1/stream", &without), ("/v1/chat", &with)]
        .map(|(path, steps)| open(&scene, path, steps))
        .into_iter()
        .collect();
    let Scene { site, upstream, mut server, account } = scene;
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    drop((server, open));
    let server = setup(&site, &upstream).start();
    let client = server.client_with(&account.api_key);
    assert_eq!(client.get("/requests").expect(200).json()["data"], json!([]));
    assert_eq!(balance(&client), "1.94", "twice what was delivered, at least the minimum, and one report");
    drop(server);
    site.verify();
}
