//! `HEAD`, compression and caching of the service's own responses, and what a browser sees at unknown paths.

use metering_tests::client::{Client, exchange};
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::support::upstream::served;
use crate::support::wire::{BASE, balance, usage_events};

/// The response to a request with these extra header lines.
fn raw_request(server: &Server, method: &str, path: &str, lines: &str) -> Vec<u8> {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n");
    exchange(server.address(), text.as_bytes()).unwrap()
}

/// The response to `HEAD`: its status line and headers. Asserts that there is no body.
fn head(server: &Server, path: &str, lines: &str) -> (String, Vec<(String, String)>) {
    let bytes = raw_request(server, "HEAD", path, lines);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    assert_eq!(bytes.len(), end + 4, "HEAD {path} has a body");
    let text = String::from_utf8(bytes).unwrap();
    let mut rows = text.trim_end().split("\r\n");
    let status = rows.next().unwrap().to_owned();
    let headers =
        rows.map(|row| row.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap());
    (status, sorted(headers.collect()))
}

fn sorted(mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
    headers.retain(|(name, _)| name != "date");
    headers.sort();
    headers
}

fn asset(client: &Client) -> String {
    let page = client.get("/metering").expect(200).text();
    let start = page.find("/assets/metering.").unwrap();
    page[start..].split('"').next().unwrap().to_owned()
}

#[test]
fn head_matches_get_without_body() {
    let (_site, account, server) = Site::serving("1");
    let key = format!("Authorization: Bearer {}\r\n", account.api_key);
    let asset = asset(&server.client());
    let paths = [
        "/health",
        "/ready",
        "/credits/plans",
        "/credits/balance",
        "/credits/usage?limit=3",
        "/credits/usage/summary?days=3",
        "/credits/usage/by-endpoint",
        "/credits/usage/volumes",
        "/credits/usage?limit=many",
        "/openapi.json",
        "/endpoints.json",
        "/.well-known/x402",
        "/metering",
        "/metering/account",
        "/docs",
        "/favicon.ico",
        "/nothing/here",
        &asset,
    ];
    for path in paths {
        for lines in [key.clone(), format!("{key}Accept-Encoding: gzip\r\n"), format!("{key}Accept: text/html\r\n")] {
            let get = Response::parse(&raw_request(&server, "GET", path, &lines)).unwrap();
            let (status, headers) = head(&server, path, &lines);
            assert!(status.starts_with(&format!("HTTP/1.1 {}", get.status)), "{path}: {status}");
            assert_eq!(get.header("content-length"), Some(get.body.len().to_string().as_str()), "{path}");
            assert_eq!(headers, sorted(get.headers), "{path} {lines}");
        }
    }
    assert!(head(&server, "/metrics", "").0.contains("200"));
    let refused = server.client().send("DELETE", "/health", None).expect(405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
    // A `HEAD` request must not use up the key that is given out once.
    let once = server.client().send("POST", "/signup/status", None).expect(405);
    assert_eq!(once.header("allow"), Some("GET"));
    assert!(head(&server, "/signup/status?session_token=x", "").0.contains("405"));
    assert_eq!(usage_events(&server.client_with(&account.api_key)), 0);
}

#[test]
fn head_of_a_metered_route_follows_the_catalogue() {
    let (_site, upstream, account, server) = served("1");
    let key = format!("Authorization: Bearer {}\r\n", account.api_key);
    // A route for GET only: a HEAD is not served, charged or forwarded.
    let (status, headers) = head(&server, "/api/echo/word", &key);
    assert!(status.contains("405"), "{status}");
    assert!(headers.contains(&("allow".to_owned(), "GET".to_owned())), "{headers:?}");
    assert!(upstream.seen().is_empty());
    assert_eq!(balance(&server.client_with(&account.api_key)), "1");
    // A route declared for HEAD has its own price.
    assert!(head(&server, "/api/echo", &key).0.contains("200"));
    assert_eq!(upstream.last().method, "HEAD");
    assert_eq!(usage_events(&server.client_with(&account.api_key)), 1);
}

#[test]
fn large_public_responses_are_compressed() {
    let (_site, _upstream, account, server) = served("1");
    let key = format!("Authorization: Bearer {}\r\n", account.api_key);
    for _ in 0..30 {
        let _ = server.client_with(&account.api_key).get("/api/echo/word").expect(200);
    }
    let gzip = format!("{key}Accept-Encoding: gzip, br\r\n");
    let asset = asset(&server.client());
    // path, whether the response is compressed
    let table = [
        ("/openapi.json", true),
        ("/endpoints.json", true),
        ("/metering", true),
        (asset.as_str(), true),
        ("/credits/usage", true),
        ("/metrics", true),
        ("/health", false),
        ("/credits/balance", false),
        // The upstream's responses pass unchanged.
        ("/api/big/1", false),
    ];
    for (path, compressed) in table {
        let plain = Response::parse(&raw_request(&server, "GET", path, &key)).unwrap().expect(200);
        assert_eq!(plain.header("content-encoding"), None, "{path}");
        let small = Response::parse(&raw_request(&server, "GET", path, &gzip)).unwrap().expect(200);
        assert_eq!(small.header("content-encoding"), compressed.then_some("gzip"), "{path}");
        assert_eq!(compressed, small.body.len() < plain.body.len() / 2, "{path}");
        assert!(!compressed || small.header("vary").is_some_and(|vary| vary.contains("accept-encoding")), "{path}");
    }
    let refused =
        Response::parse(&raw_request(&server, "GET", "/openapi.json", "Accept-Encoding: gzip;q=0\r\n")).unwrap();
    assert_eq!(refused.header("content-encoding"), None);
}

#[test]
fn responses_with_a_key_are_never_compressed() {
    let site = Site::new();
    let server = site.server().set("METERING_SIGNUP__BOT_CHECK", "off").start();
    let client = server.client().with_header("Accept-Encoding", "gzip");
    let started = client
        .post("/signup/initiate", &serde_json::json!({"agent_name": "a".repeat(60), "email": "reader@example.com"}))
        .expect(201);
    let text = |name: &str| started.json()[name].as_str().unwrap().to_owned();
    let approval = serde_json::json!({"user_code": text("user_code"), "tos_accepted": true});
    let approved = client.post("/verify", &approval).expect(200);
    let status = client.get(&format!("/signup/status?session_token={}", text("session_token"))).expect(200);
    assert!(status.text().contains("sk_live_"), "{}", status.text());
    for response in [started, approved, status] {
        assert_eq!((response.header("content-encoding"), response.header("cache-control")), (None, Some("no-store")));
    }
}

#[test]
fn unchanged_assets_are_cached() {
    let site = Site::new();
    let server = site.server().start();
    let asset = asset(&server.client());
    // path, expected `Cache-Control`
    let table = [
        (asset.as_str(), "public, max-age=31536000, immutable"),
        ("/favicon.ico", "public, max-age=3600"),
        ("/openapi.json", "public, no-cache"),
        ("/endpoints.json", "public, max-age=60"),
    ];
    for (path, kept) in table {
        for gzip in ["", "Accept-Encoding: gzip\r\n"] {
            let first = Response::parse(&raw_request(&server, "GET", path, gzip)).unwrap().expect(200);
            assert_eq!(first.header("cache-control"), Some(kept), "{path}");
            let tag = first.header("etag").unwrap();
            let known = format!("{gzip}If-None-Match: {tag}\r\n");
            let again = Response::parse(&raw_request(&server, "GET", path, &known)).unwrap().expect(304);
            assert_eq!((again.header("etag"), again.body.len()), (Some(tag), 0), "{path}");
        }
    }
}

#[test]
fn unknown_path_is_a_page_for_browsers_and_json_for_programs() {
    let (_site, account, server) = Site::serving("1");
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
    let person = server.client().with_header("Accept", browser);
    for path in ["/metring", "/signup", "/credits", "/nothing/here", "/healthz"] {
        let page = person.get(path).expect(404);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(page.text().contains("<!doctype html>"), "{path}");
        assert!(page.header("content-security-policy").is_some(), "{path}");
        assert!(page.header("vary").is_some() && page.headers.iter().any(|(_, value)| value == "accept"), "{path}");
        let json = server.client().get(path).expect(404);
        assert_eq!((json.error().as_str(), json.header("vary")), ("not_found", Some("accept")), "{path}");
        assert_eq!(person.send("POST", path, None).expect(404).error(), "not_found", "{path}");
        let program = server.client().with_header("Accept", "application/json, text/html;q=0.5");
        assert_eq!(program.get(path).expect(404).error(), "not_found", "{path}");
    }
    // Existing paths keep their format, including metered routes and errors.
    assert_eq!(person.get(BASE).expect(401).error(), "unauthorized");
    assert_eq!(person.with_key(&account.api_key).get("/mpp/nothing").expect(404).error(), "unknown_route");
    let health = server.client().get("/health").expect(200).json();
    assert_eq!(
        (&health["ok"], &health["service"], &health["status"]),
        (&true.into(), &"metering-server".into(), &"ok".into())
    );
}
