//! The gateway in front of a real HTTP service: what is forwarded in each direction.

use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::support::upstream::{Upstream, catalogue, served};
use crate::support::wire::{amount, balance};

struct Fixture {
    site: Site,
    upstream: Upstream,
    server: Server,
    client: Client,
    org_id: String,
}

fn fixture() -> Fixture {
    let (site, upstream, account, server) = served("1");
    let client = server.client_with(&account.api_key);
    Fixture { site, upstream, server, client, org_id: account.org_id }
}

#[test]
fn method_path_query_and_body_reach_the_upstream_in_normal_form() {
    let fixture = fixture();
    // method, target, body, target at the upstream
    let table: [(&str, &str, &[u8], &str); 8] = [
        ("GET", "/api/echo/word", b"", "/api/echo/word"),
        ("GET", "/api/echo/%77ord", b"", "/api/echo/word"),
        ("GET", "/api/echo/a%20b%c3%a9", b"", "/api/echo/a%20b%C3%A9"),
        ("GET", "/api/echo/a%3bb=c,d", b"", "/api/echo/a%3Bb=c,d"),
        ("GET", "/api/echo?q=1", b"", "/api/echo?q=1"),
        ("GET", "/api/echo?&q=a+b%26c%3Dd&", b"", "/api/echo?q=a%20b%26c%3Dd"),
        ("POST", "/api/echo?q=x", b"{\"a\": [1, 2]}", "/api/echo?q=x"),
        ("POST", "/api/echo", b"\x00\xff binary \r\n\r\n", "/api/echo"),
    ];
    let calls = i64::try_from(table.len()).unwrap();
    for (method, target, body, seen_target) in table {
        let response = fixture.client.send(method, target, (!body.is_empty()).then_some(body)).expect(200);
        assert_eq!(response.body, body, "{target}");
        let seen = fixture.upstream.last();
        assert_eq!((seen.method.as_str(), seen.target.as_str()), (method, seen_target));
        assert_eq!(seen.body, body, "{target}");
    }
    assert_eq!(balance(&fixture.client), amount((7_200 - calls) * 1_000_000));
    fixture.site.verify();
}

#[test]
fn credentials_are_removed_and_the_account_is_named() {
    let fixture = fixture();
    let client = fixture
        .client
        .with_header("Cookie", "session=secret")
        .with_header("X-Forwarded-For", "6.6.6.6")
        .with_header("X-Metering-Org-Id", "org_forged")
        .with_header("X-BDS-Internal-Billing-Secret", "secret")
        .with_header("Proxy-Authorization", "Basic c2VjcmV0")
        .with_header("TE", "trailers")
        .with_header("Accept-Language", "de, en")
        .with_header("X-Custom", "one")
        .with_header("X-Custom", "two");
    let _ = client.get("/api/echo/word").expect(200);
    let seen = fixture.upstream.last();
    let absent = ["authorization", "x-api-key", "cookie", "x-bds-internal-billing-secret", "proxy-authorization", "te"];
    for name in absent {
        assert_eq!(seen.headers.get(name), None, "{name}");
    }
    let one = |name: &str| seen.headers.get(name).map(Vec::as_slice).unwrap_or_default().join("|");
    assert_eq!(one("x-metering-org-id"), fixture.org_id);
    assert_eq!(one("x-forwarded-for"), "127.0.0.1");
    assert_eq!(one("accept-language"), "de, en");
    assert_eq!(one("x-custom"), "one|two");
    assert!(!format!("{:?}", seen.headers).contains("sk_live_"), "{:?}", seen.headers);
    let key = fixture.site.account("1").api_key;
    let _ = fixture.server.client().with_header("X-API-Key", &key).get("/api/echo/word").expect(200);
    assert!(!format!("{:?}", fixture.upstream.last().headers).contains("sk_live_"));
    assert!(!fixture.server.log().contains("sk_live_"), "no key is logged");
}

#[test]
fn upstream_response_loses_headers_reserved_for_the_gateway() {
    let fixture = fixture();
    let response = fixture.client.get("/api/echo/word").expect(200);
    assert_eq!(response.header("x-upstream"), Some("yes"));
    assert_eq!(response.header("etag"), Some("\"v1\""));
    assert_eq!(response.header("content-type"), Some("text/x-echo"));
    let absent = ["set-cookie", "x-hop", "x-metering-org-id", "ratelimit"];
    // Those that would affect the origin of the pages.
    let of_origin = ["service-worker-allowed", "clear-site-data", "alt-svc", "strict-transport-security", "refresh"];
    for name in absent.into_iter().chain(of_origin) {
        assert_eq!(response.header(name), None, "{name}");
    }
    let policies = response.headers.iter().filter(|(name, _)| name == "content-security-policy");
    assert_eq!(policies.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["script-src *", "sandbox"]);
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    let balances: Vec<_> = response.headers.iter().filter(|(name, _)| name == "x-bds-credit-balance").collect();
    assert_eq!(balances.len(), 1, "{balances:?}");
    assert_eq!(balances[0].1, amount(7_199_000_000));
}

#[test]
fn document_protection_headers_can_be_disabled() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let server = site
        .server()
        .set("METERING_GATEWAY__CONTENT_SECURITY_POLICY", "")
        .set("METERING_GATEWAY__NOSNIFF", "false")
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .start();
    let response = server.client_with(&account.api_key).get("/api/echo/word").expect(200);
    assert_eq!(response.header("content-security-policy"), Some("script-src *"));
    assert_eq!(response.header("x-content-type-options"), None);
    server.expect_log("gateway.content_security_policy is empty");
}

#[test]
fn header_spelling_cannot_change_identity_or_method() {
    let fixture = fixture();
    let dropped = [
        "X_Metering_Org_Id",
        "X_Forwarded_For",
        "X_Real_IP",
        "X-HTTP-Method-Override",
        "X_HTTP_Method_Override",
        "X-HTTP-Method",
        "X-Method-Override",
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Original-Host",
        "X-Forwarded-Prefix",
        "SCRIPT_NAME",
        "Proxy",
    ];
    let forging = |client: Client, name: &&str| client.with_header(name, "forged");
    let client = dropped.iter().fold(fixture.client.clone(), forging).with_header("X_Custom", "kept");
    let _ = client.get("/api/echo/word").expect(200);
    let seen = fixture.upstream.last();
    assert!(!format!("{:?}", seen.headers).contains("forged"), "{:?}", seen.headers);
    assert_eq!(seen.headers.get("x_custom").map(Vec::as_slice), Some(["kept".to_owned()].as_slice()));
    assert_eq!(seen.headers["x-metering-org-id"], [fixture.org_id]);
}

#[test]
fn empty_post_has_a_content_length() {
    let fixture = fixture();
    let length =
        |seen: crate::support::upstream::Seen| seen.headers.get("content-length").map(|values| values.join("|"));
    let _ = fixture.client.send("POST", "/api/echo", Some(b"")).expect(200);
    assert_eq!(length(fixture.upstream.last()).as_deref(), Some("0"));
    let _ = fixture.client.send("POST", "/api/echo", None).expect(200);
    assert_eq!(length(fixture.upstream.last()).as_deref(), Some("0"), "whether or not the client sends a length");
    let _ = fixture.client.get("/api/echo").expect(200);
    assert_eq!(length(fixture.upstream.last()), None);
    let _ = fixture.client.send("POST", "/api/echo", Some(b"four")).expect(200);
    assert_eq!(length(fixture.upstream.last()).as_deref(), Some("4"));
}

#[test]
fn response_of_any_status_is_passed_on_and_charged_unless_its_status_is_free() {
    let fixture = fixture();
    let charged = [201, 204, 400, 401, 402, 403, 404, 418];
    for status in charged.into_iter().chain([429, 500, 501]) {
        let response = fixture.client.get(&format!("/api/status/{status}")).expect(status);
        assert_eq!(response.header("x-upstream"), Some("yes"), "{status}");
        if status != 204 {
            assert_eq!(response.text(), format!("status {status}"));
        }
        let cost = if charged.contains(&status) { "0.0001388889" } else { "0" };
        assert_eq!(response.header("x-bds-credit-charged"), Some(cost), "{status}");
    }
    let calls = i64::try_from(charged.len()).unwrap();
    assert_eq!(balance(&fixture.client), amount((7_200 - calls) * 1_000_000));
}

#[test]
fn redirects_heads_and_large_bodies_are_passed_to_the_client() {
    let fixture = fixture();
    let response = fixture.client.get("/api/moved").expect(302);
    assert_eq!((response.header("location"), response.text().as_str()), (Some("/api/echo"), "elsewhere"));
    assert_eq!(fixture.upstream.seen().len(), 1);
    let response = fixture.client.open_with("HEAD", "/api/echo");
    assert_eq!((response.status, response.header("x-bds-credit-charged")), (200, Some("0.0001388889")));
    assert_eq!(fixture.upstream.last().method, "HEAD");
    let response = fixture.client.get("/api/big/48").expect(200);
    assert_eq!(response.body.len(), 48 << 20);
    assert!(response.body.iter().all(|byte| *byte == b'x'));
}

#[test]
fn unmetered_route_needs_no_key_and_costs_nothing() {
    let fixture = fixture();
    let response = fixture.server.client().get("/api/free").expect(200);
    assert_eq!(response.header("x-bds-credit-charged"), None);
    let _ = fixture.client.get("/api/free").expect(200);
    assert_eq!(fixture.upstream.last().headers.get("authorization"), None);
    assert_eq!(balance(&fixture.client), "1");
}

#[test]
fn refused_requests_never_reach_the_upstream() {
    let fixture = fixture();
    let anonymous = fixture.server.client();
    let table = [
        (&anonymous, "GET", "/api/echo/word", 401),
        (&fixture.client, "GET", "/api/nothing", 404),
        (&fixture.client, "DELETE", "/api/echo", 405),
        (&fixture.client, "GET", "/api/status/many", 400),
        (&fixture.client, "GET", "/api/echo?other=1", 400),
        (&fixture.client, "GET", "/api/echo/..%2fstatus", 400),
        (&fixture.client, "GET", "/api/echo/a;b=c", 400),
        (&fixture.client, "GET", "/api/pieces/WHOLE", 400),
        (&fixture.client, "GET", "/api/pieces/whole.json", 400),
        (&fixture.client, "GET", "/api/pieces/%2577hole", 400),
    ];
    for (client, method, path, status) in table {
        let _ = client.send(method, path, None).expect(status);
    }
    assert_eq!(fixture.upstream.seen().len(), 0, "{:?}", fixture.upstream.seen());
    assert_eq!(balance(&fixture.client), "1");
}

#[test]
fn events_are_forwarded_as_they_are_sent() {
    let fixture = fixture();
    let mut stream = fixture.client.open("/api/events");
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(stream.header("x-bds-credit-charged"), Some("0.01"));
    fixture.upstream.wait_for_streams(1);
    for number in 0..20 {
        // The next event is sent only after this one has arrived, so the test would hang if anything buffered.
        fixture.upstream.send(&format!("event {number}"));
        let _ = stream.read_until(&format!("data: event {number}\n\n"));
    }
    drop(stream);
    fixture.upstream.wait_for_streams(0);
    assert_eq!(balance(&fixture.client), "0.99");
}

#[test]
fn silent_stream_outlives_the_response_timeout() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let server = site
        .server()
        .set("METERING_GATEWAY__UPSTREAM_TIMEOUT", "1s")
        .set("METERING_HTTP__HEADER_TIMEOUT", "1s")
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .start();
    let mut stream = server.client_with(&account.api_key).open("/api/events");
    upstream.wait_for_streams(1);
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    upstream.send("still here");
    let _ = stream.read_until("still here");
}
