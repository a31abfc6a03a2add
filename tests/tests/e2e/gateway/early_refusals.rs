//! Requests that are refused by their head: their bodies are not asked for, not read, and not kept.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use metering_core::{ApiKey, SystemRandomness};
use metering_tests::client::{connect, read_all};
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;

use crate::keys::made;
use crate::mcp::metric;
use crate::support::upstream::{Upstream, catalogue, served};
use crate::support::wire::balance;

/// The head of a request with a body of this length.
fn head(path: &str, api_key: Option<&str>, length: usize, more: &str) -> String {
    let key = api_key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{key}{more}Content-Length: {length}\r\n\r\n")
}

/// The response to a client that sends only a head and waits to be asked for the body.
fn expecting(server: &Server, path: &str, api_key: Option<&str>) -> Response {
    let mut stream = connect(server.address()).unwrap();
    let head = head(path, api_key, 60_000, "Expect: 100-continue\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let text = read_all(&mut stream).unwrap();
    assert!(!text.starts_with(b"HTTP/1.1 100"), "{path}: {}", String::from_utf8_lossy(&text));
    Response::parse(&text).unwrap()
}

#[test]
fn refused_request_is_not_asked_for_its_body() {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let (rich, poor, limited) = (site.account("1"), site.account("0"), site.account_with_caps("1", 1, 0));
    let server = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site)).start();
    let reader = made(&server.client_with(&rich.api_key), &json!({"scopes": ["read"]}));
    let elsewhere = made(&server.client_with(&rich.api_key), &json!({"networks": ["192.0.2.0/24"]}));
    // The first refusal sends an event to the account's owner, and takes a commit.
    let _ = server.client_with(&poor.api_key).get("/api/echo").expect(402);
    let _ = server.client_with(&limited.api_key).get("/api/echo").expect(200);
    let unknown = ApiKey::generate(&SystemRandomness);
    let table = [
        ("/api/echo", None, 401, "unauthorized"),
        ("/api/echo", Some(unknown.expose()), 401, "unauthorized"),
        ("/api/unknown", None, 401, "unauthorized"),
        ("/api/unknown", Some(rich.api_key.as_str()), 404, "unknown_route"),
        ("/api/echo", Some(reader.secret.as_str()), 403, "key_scope"),
        ("/api/echo", Some(elsewhere.secret.as_str()), 403, "key_network"),
        ("/api/echo", Some(poor.api_key.as_str()), 402, "insufficient_credits"),
        ("/api/echo", Some(limited.api_key.as_str()), 429, "rate_limited"),
    ];
    for (path, api_key, status, error) in table {
        let response = expecting(&server, path, api_key);
        assert_eq!((response.status, response.error().as_str()), (status, error), "{path}");
        assert!(response.header("x-request-id").is_some(), "{path}: {:?}", response.headers);
    }
    assert_eq!(upstream.seen().len(), 1);
    assert_eq!(balance(&server.client_with(&rich.api_key)), "1");
    // The same refusals are counted as those of the charge.
    assert_eq!(metric(&server, "metering_charges_total{outcome=\"rate_limited\"}"), 1);
    assert_eq!(metric(&server, "metering_charges_total{outcome=\"key_not_allowed\"}"), 2);
}

#[test]
fn connection_stays_usable_if_the_body_is_small_and_says_that_it_closes_otherwise() {
    let (_site, _upstream, account, server) = served("1");
    let mut stream = connect(server.address()).unwrap();
    let refused = head("/api/echo", None, 5, "") + "hello";
    let served = head("/api/echo", Some(&account.api_key), 2, "Connection: close\r\n") + "ok";
    stream.write_all(refused.as_bytes()).unwrap();
    stream.write_all(served.as_bytes()).unwrap();
    let text = String::from_utf8(read_all(&mut stream).unwrap()).unwrap();
    assert!(text.starts_with("HTTP/1.1 401") && text.contains("HTTP/1.1 200") && text.ends_with("ok"), "{text}");
    let mut stream = connect(server.address()).unwrap();
    stream.write_all(head("/api/echo", None, 5, "").as_bytes()).unwrap();
    let refused = Response::parse(&read_all(&mut stream).unwrap()).unwrap();
    assert_eq!((refused.status, refused.header("connection")), (401, Some("close")));
}

#[test]
fn bodies_of_clients_without_a_key_are_not_kept() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let setup = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
    let server = setup.set("METERING_HTTP__MAX_BODY_BYTES", "10000000").start();
    let (part, started) = (vec![b'x'; 100_000], Instant::now());
    let mut streams: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = connect(server.address()).unwrap();
            stream.write_all(head("/api/echo", None, 10_000_000, "").as_bytes()).unwrap();
            let _ = stream.write_all(&part);
            stream
        })
        .collect();
    for stream in &mut streams {
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 401");
    }
    assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
    assert_eq!(metric(&server, "metering_bodies_kept_bytes"), 0);
    assert!(upstream.seen().is_empty());
}
