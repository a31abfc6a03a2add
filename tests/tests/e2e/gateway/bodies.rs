//! Routes that declare their request body: the upstream gets what was checked, written again, or nothing.

use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::upstream::Upstream;
use crate::support::wire::balance;

struct Fixture {
    site: Site,
    upstream: Upstream,
    server: Server,
    api_key: String,
}

impl Fixture {
    fn client(&self) -> Client {
        self.server.client_with(&self.api_key)
    }
}

/// Two routes with the same body: one at a fixed price, one that holds the maximum cost that the body allows.
fn fixture() -> Fixture {
    let (site, upstream) = (Site::new(), Upstream::start());
    let request = json!({
        "schema": {"type": "object", "required": ["model"], "properties": {
            "model": {"enum": ["small"]},
            "text": {"type": "string"},
            "max_tokens": {"type": "integer", "minimum": 1, "maximum": 100}}},
        "unknown": "remove",
        "set": {"/store": false},
    });
    let by_usage = json!({"max": "0.5", "units": {"tokens": "0.001"}, "missing": "hold", "report": {"json": {"tokens": "/tokens"}},
        "estimate": {"json": {"tokens": "/max_tokens"}}});
    let route = |path: &str, price: Value| json!({"path": path, "method": "POST", "metered": true, "price": price, "request": request});
    let routes = [route("/api/echo", json!("0.01")), route("/api/echo/tokens", by_usage)];
    let catalogue = json!({"market": "TEST", "version": 1, "endpoints": routes}).to_string();
    let catalogue = site.write("bodies.json", &catalogue).display().to_string();
    let account = site.account("1");
    let server = site.server().args(["--upstream", &upstream.url(), "--catalogue", &catalogue]).start();
    Fixture { site, upstream, server, api_key: account.api_key }
}

#[test]
fn upstream_gets_what_was_checked_and_nothing_else() {
    let fixture = fixture();
    let body = "{ \"mod\\u0065l\": \"small\",\"text\" : \"caf\u{e9}\\n\", \"extra_body\": {\"model\": \"large\"}}";
    let client =
        fixture.client().with_header("Content-Type", "text/plain; charset=utf-16").with_header("Content-MD5", "x");
    let response = client.send("POST", "/api/echo", Some(body.as_bytes())).expect(200);
    let forwarded = "{\"model\":\"small\",\"text\":\"caf\u{e9}\\n\",\"store\":false}";
    assert_eq!(response.text(), forwarded);
    let seen = fixture.upstream.last();
    assert_eq!(seen.headers["content-type"], ["application/json"]);
    assert_eq!(seen.headers["content-length"], [forwarded.len().to_string()]);
    assert!(!seen.headers.contains_key("content-md5"));
    assert_eq!(balance(&fixture.client()), "0.99");
    drop(fixture.server);
    fixture.site.verify();
}

#[test]
fn refused_body_costs_nothing_and_is_not_forwarded() {
    let fixture = fixture();
    // path, body, what is wrong
    let table: [(&str, &[u8], &str); 7] = [
        ("/api/echo", br#"{"model": "large"}"#, "/model"),
        ("/api/echo", br#"{"model": "small", "max_tokens": 101}"#, "/max_tokens"),
        ("/api/echo", br#"{"model": "small", "model": "small"}"#, "body"),
        ("/api/echo", b"{\"model\": \"small\", \"text\": \"\xff\"}", "body"),
        ("/api/echo", b"model=small", "body"),
        ("/api/echo", b"", "body"),
        ("/api/echo/tokens", br#"{"model": "small", "max_tokens": 0}"#, "/max_tokens"),
    ];
    for (path, body, pointer) in table {
        let refused = fixture.client().send("POST", path, Some(body)).expect(400).json();
        assert_eq!(refused["error"], "invalid_parameter", "{refused}");
        let fields = refused["fields"].as_object().unwrap();
        assert!(fields.keys().eq([pointer]), "{refused}");
        // Without a live key, a caller gets no information.
        let _ = fixture.server.client().send("POST", path, Some(body)).expect(401);
    }
    let gzip = fixture.client().with_header("Content-Encoding", "gzip");
    let refused = gzip.send("POST", "/api/echo", Some(br#"{"model": "small"}"#)).expect(400).json();
    assert_eq!(refused["fields"]["body"], "must not be encoded; send it without Content-Encoding");
    assert!(fixture.upstream.seen().is_empty());
    assert_eq!(balance(&fixture.client()), "1");
}

#[test]
fn hold_is_what_the_forwarded_body_allows() {
    let fixture = fixture();
    let body = br#"{"model": "small", "max_tokens": 20, "MAX_TOKENS": 9999, "extra_body": {"max_tokens": 9999}}"#;
    // The upstream echoes the body, which reports nothing: all that was held is charged.
    let response = fixture.client().send("POST", "/api/echo/tokens", Some(body)).expect(200);
    assert_eq!(response.text(), r#"{"model":"small","max_tokens":20,"store":false}"#);
    assert_eq!(response.header("x-bds-credit-charged"), Some("0.02"));
    assert_eq!(balance(&fixture.client()), "0.98");
    drop(fixture.server);
    fixture.site.verify();
}
