//! The endpoint itself: who may ask, about which request, and how often it is charged.

use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::support::upstream::catalogue;
use crate::support::wire::{BASE_CALL, CREDIT, amount, balance};

struct Fixture {
    site: Site,
    server: Server,
    client: Client,
    org_id: String,
}

fn fixture() -> Fixture {
    let site = Site::new();
    let account = site.account("1");
    let server = site.server().args(catalogue(&site)).args(["--surfaces", "metering,authorize"]);
    let server = server.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").start();
    let client = server.client_with(&account.api_key);
    Fixture { site, server, client, org_id: account.org_id }
}

type Headers<'h> = &'h [(&'h str, &'h str)];

/// A proxy that asks about this request.
fn about(client: &Client, method: &str, target: &str) -> Client {
    client.clone().with_header("X-Forwarded-Method", method).with_header("X-Forwarded-Uri", target)
}

#[test]
fn a_yes_has_no_body_and_names_account_balance_and_charge() {
    let fixture = fixture();
    let original = fixture.client.clone().with_header("X-Original-Method", "GET");
    let original = original.with_header("X-Original-URI", "/api/echo/word");
    // The client, and where and how it asks.
    let table = [
        (about(&fixture.client, "GET", "/api/echo?q=1"), "GET", "/authorize"),
        (about(&fixture.client, "POST", "/api/echo"), "GET", "/authorize/"),
        (about(&fixture.client, "GET", "/api/echo/word"), "POST", "/authorize"),
        (original, "GET", "/authorize"),
        (fixture.client.clone(), "GET", "/authorize/api/echo?q=1"),
        (fixture.client.clone(), "POST", "/authorize/api/echo"),
        (about(&fixture.client, "GET", "/api/echo?q=1"), "GET", "/authorize/api/echo?q=1"),
    ];
    for (calls, (client, method, path)) in (1..).zip(table) {
        let yes = client.send(method, path, None).expect(200);
        assert_eq!(yes.body, b"", "{path}");
        assert_eq!(yes.header("x-metering-org-id"), Some(&*fixture.org_id));
        assert_eq!(yes.header("x-bds-credit-charged"), Some(&*amount(BASE_CALL)));
        assert_eq!(yes.header("x-bds-credit-balance"), Some(&*amount(CREDIT - calls * BASE_CALL)));
    }
    let free = about(&fixture.client, "GET", "/api/free").get("/authorize").expect(200);
    assert_eq!((free.header("x-bds-credit-charged"), free.header("x-metering-org-id")), (None, None));
    fixture.site.verify();
}

#[test]
fn missing_and_contradicting_headers_are_named() {
    let fixture = fixture();
    let client = || fixture.client.clone();
    let (method, uri) = (("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/api/echo/word"));
    // headers, path, the header that the response names
    let table: [(Headers<'_>, &str, &str); 10] = [
        (&[], "/authorize", "X-Forwarded-Method"),
        (&[method], "/authorize", "X-Forwarded-Uri"),
        (&[uri], "/authorize", "X-Forwarded-Method"),
        (&[method, uri, ("X-Original-URI", "/api/free")], "/authorize", "x-forwarded-uri"),
        (&[method, uri, ("X-Original-Method", "POST")], "/authorize", "x-forwarded-method"),
        (&[method, uri, uri], "/authorize", "x-forwarded-uri"),
        (&[method, ("X-Forwarded-Uri", "http://host/api/echo/word")], "/authorize", "X-Forwarded-Uri"),
        (&[method, uri], "/authorize/api/free", "x-forwarded-uri"),
        (&[("X-Forwarded-Method", "POST")], "/authorize/api/echo/word", "x-forwarded-method"),
        (&[method, uri, ("X-Rewrite-URL", "/api/free")], "/authorize", "x-rewrite-url"),
    ];
    for (headers, path, named) in table {
        let client = headers.iter().fold(client(), |client, (name, value)| client.with_header(name, value));
        let refused = client.get(path).expect(400);
        assert_eq!(refused.error(), "validation_failed");
        assert!(refused.json()["fields"][named].is_string(), "{headers:?} {path}: {}", refused.text());
    }
    assert_eq!(balance(&fixture.client), amount(CREDIT), "nothing was charged");
}

#[test]
fn only_trusted_proxies_may_ask() {
    let site = Site::new();
    let account = site.account("1");
    let setup = || site.server().args(catalogue(&site)).args(["--surfaces", "metering,authorize"]);
    let refused = setup().run();
    assert!(refused.stderr.contains("http.trusted_proxies"), "{refused:?}");
    let server = setup().set("METERING_HTTP__TRUSTED_PROXIES", "192.0.2.1").start();
    let client = server.client_with(&account.api_key);
    let refused = about(&client, "GET", "/api/echo/word").get("/authorize").expect(403);
    assert_eq!(refused.error(), "forbidden");
    assert_eq!(balance(&client), amount(CREDIT));
    drop(server);
    // It is off unless it is named.
    let server = site.server().args(catalogue(&site)).set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").start();
    let _ = about(&server.client_with(&account.api_key), "GET", "/api/echo/word").get("/authorize").expect(404);
}

#[test]
fn a_request_id_of_the_proxy_is_charged_once_for_its_key_and_request() {
    let fixture = fixture();
    let other = fixture.site.account("1");
    let retry = |client: &Client, target: &str| about(client, "GET", target).with_header("X-Request-Id", "r1");
    let first = retry(&fixture.client, "/api/echo/word");
    for _ in 0..3 {
        let yes = first.get("/authorize").expect(200);
        assert_eq!(yes.header("x-bds-credit-charged"), Some(&*amount(BASE_CALL)));
    }
    assert_eq!(balance(&fixture.client), amount(CREDIT - BASE_CALL), "retries are not charged");
    // A client that knew a way to choose the id gets no further.
    assert_eq!(first.get("/authorize").expect(409).error(), "idempotency_key_used");
    let elsewhere = retry(&fixture.client, "/api/echo/other").get("/authorize");
    assert_ne!(elsewhere.status, 200, "another request with the same id is not a retry: {}", elsewhere.text());
    let of_other = fixture.server.client_with(&other.api_key);
    let _ = retry(&of_other, "/api/echo/word").get("/authorize").expect(200);
    assert_eq!(balance(&of_other), amount(CREDIT - BASE_CALL), "another key pays for itself");
    let _ = retry(&fixture.client, "/api/echo/word").with_header("X-Request-Id", "r2").get("/authorize").expect(400);
    assert_eq!(balance(&fixture.client), amount(CREDIT - BASE_CALL));
    fixture.site.verify();
}

#[test]
fn other_paths_are_refused_unless_the_operator_lets_them_pass() {
    let fixture = fixture();
    assert_eq!(about(&fixture.client, "GET", "/health").get("/authorize").expect(404).error(), "unknown_route");
    drop(fixture.server);
    let setup = fixture.site.server().args(catalogue(&fixture.site)).args(["--surfaces", "metering,authorize"]);
    let setup = setup.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1");
    let server = setup.set("METERING_AUTHORIZE__PASS_OTHERS", "true").start();
    let _ = about(&server.client(), "GET", "/health").get("/authorize").expect(200);
    let _ = about(&server.client(), "GET", "/api/unheard-of").get("/authorize").expect(401);
    let document = server.client().get("/openapi.json").expect(200).json();
    assert_eq!(document["paths"]["/authorize"]["get"]["x-internal"], true);
}
