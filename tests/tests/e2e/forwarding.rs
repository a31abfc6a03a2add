//! The gateway in front of a real HTTP service: what is forwarded in each direction.

use metering_tests::client::Client;
use metering_tests::server::Server;
use metering_tests::site::Site;

use crate::upstream::{Upstream, catalogue};
use crate::wire::{amount, balance};

struct Scene {
    site: Site,
    upstream: Upstream,
    server: Server,
    client: Client,
    org_id: String,
}

fn scene() -> Scene {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let server = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site)).start();
    let client = server.client_with(&account.api_key);
    Scene { site, upstream, server, client, org_id: account.org_id }
}

#[test]
fn method_path_query_and_body_reach_the_upstream_in_normal_form() {
    let scene = scene();
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
        let answer = scene.client.send(method, target, (!body.is_empty()).then_some(body)).expect(200);
        assert_eq!(answer.body, body, "{target}");
        let seen = scene.upstream.last();
        assert_eq!((seen.method.as_str(), seen.target.as_str()), (method, seen_target));
        assert_eq!(seen.body, body, "{target}");
    }
    assert_eq!(balance(&scene.client), amount((7_200 - calls) * 1_000_000));
    scene.site.verify();
}

#[test]
fn secrets_stay_behind_and_the_payer_is_named() {
    let scene = scene();
    let client = scene
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
    let seen = scene.upstream.last();
    let absent = ["authorization", "x-api-key", "cookie", "x-bds-internal-billing-secret", "proxy-authorization", "te"];
    for name in absent {
        assert_eq!(seen.headers.get(name), None, "{name}");
    }
    let one = |name: &str| seen.headers.get(name).map(Vec::as_slice).unwrap_or_default().join("|");
    assert_eq!(one("x-metering-org-id"), scene.org_id);
    assert_eq!(one("x-forwarded-for"), "127.0.0.1");
    assert_eq!(one("accept-language"), "de, en");
    assert_eq!(one("x-custom"), "one|two");
    assert!(!format!("{:?}", seen.headers).contains("sk_live_"), "{:?}", seen.headers);
    assert!(!scene.server.log().contains("sk_live_"), "no key is logged");
}

#[test]
fn an_api_key_header_is_not_forwarded_either() {
    let scene = scene();
    let key = scene.site.account("1").api_key;
    let _ = scene.server.client().with_header("X-API-Key", &key).get("/api/echo/word").expect(200);
    assert!(!format!("{:?}", scene.upstream.last().headers).contains("sk_live_"));
}

#[test]
fn the_upstreams_answer_comes_back_without_what_is_not_its_to_say() {
    let scene = scene();
    let answer = scene.client.get("/api/echo/word").expect(200);
    assert_eq!(answer.header("x-upstream"), Some("yes"));
    assert_eq!(answer.header("etag"), Some("\"v1\""));
    assert_eq!(answer.header("content-type"), Some("text/x-echo"));
    for absent in ["set-cookie", "x-hop", "x-metering-org-id", "ratelimit"] {
        assert_eq!(answer.header(absent), None, "{absent}");
    }
    let balances: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "x-bds-credit-balance").collect();
    assert_eq!(balances.len(), 1, "{balances:?}");
    assert_eq!(balances[0].1, amount(7_199_000_000));
}

#[test]
fn the_upstreams_response_cannot_act_on_the_pages_origin() {
    let scene = scene();
    let answer = scene.client.get("/api/echo/word").expect(200);
    let absent =
        ["set-cookie", "service-worker-allowed", "clear-site-data", "alt-svc", "strict-transport-security", "refresh"];
    for name in absent {
        assert_eq!(answer.header(name), None, "{name}");
    }
    let policies = answer.headers.iter().filter(|(name, _)| name == "content-security-policy");
    assert_eq!(policies.map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["script-src *", "sandbox"]);
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn the_operator_can_leave_the_upstreams_documents_alone() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let server = site
        .server()
        .set("METERING_GATEWAY__CONTENT_SECURITY_POLICY", "")
        .set("METERING_GATEWAY__NOSNIFF", "false")
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .start();
    let answer = server.client_with(&account.api_key).get("/api/echo/word").expect(200);
    assert_eq!(answer.header("content-security-policy"), Some("script-src *"));
    assert_eq!(answer.header("x-content-type-options"), None);
    assert!(server.log().contains("gateway.content_security_policy is empty"), "{}", server.log());
}

#[test]
fn headers_in_any_spelling_do_not_change_who_asks_or_what_runs() {
    let scene = scene();
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
    let client = dropped.iter().fold(scene.client.clone(), forging).with_header("X_Custom", "kept");
    let _ = client.get("/api/echo/word").expect(200);
    let seen = scene.upstream.last();
    assert!(!format!("{:?}", seen.headers).contains("forged"), "{:?}", seen.headers);
    assert_eq!(seen.headers.get("x_custom").map(Vec::as_slice), Some(["kept".to_owned()].as_slice()));
    assert_eq!(seen.headers["x-metering-org-id"], [scene.org_id]);
}

#[test]
fn an_empty_post_says_that_it_is_empty() {
    let scene = scene();
    let length = |seen: crate::upstream::Seen| seen.headers.get("content-length").map(|values| values.join("|"));
    let _ = scene.client.send("POST", "/api/echo", Some(b"")).expect(200);
    assert_eq!(length(scene.upstream.last()).as_deref(), Some("0"));
    let _ = scene.client.send("POST", "/api/echo", None).expect(200);
    assert_eq!(length(scene.upstream.last()).as_deref(), Some("0"), "whether or not the client sends a length");
    let _ = scene.client.get("/api/echo").expect(200);
    assert_eq!(length(scene.upstream.last()), None);
    let _ = scene.client.send("POST", "/api/echo", Some(b"four")).expect(200);
    assert_eq!(length(scene.upstream.last()).as_deref(), Some("4"));
}

#[test]
fn an_answer_is_an_answer_whatever_its_status_and_stays_charged() {
    let scene = scene();
    let statuses = [201, 204, 400, 401, 402, 403, 404, 418, 429, 500, 501];
    for status in statuses {
        let answer = scene.client.get(&format!("/api/status/{status}")).expect(status);
        assert_eq!(answer.header("x-upstream"), Some("yes"), "{status}");
        if status != 204 {
            assert_eq!(answer.text(), format!("status {status}"));
        }
        assert_eq!(answer.header("x-bds-credit-charged"), Some("0.0001388889"), "{status}");
    }
    let calls = i64::try_from(statuses.len()).unwrap();
    assert_eq!(balance(&scene.client), amount((7_200 - calls) * 1_000_000));
}

#[test]
fn redirects_are_the_clients_to_follow() {
    let scene = scene();
    let answer = scene.client.get("/api/moved").expect(302);
    assert_eq!((answer.header("location"), answer.text().as_str()), (Some("/api/echo"), "elsewhere"));
    assert_eq!(scene.upstream.seen().len(), 1);
}

#[test]
fn a_head_request_has_no_body() {
    let scene = scene();
    let answer = scene.client.open_with("HEAD", "/api/echo");
    assert_eq!((answer.status, answer.header("x-bds-credit-charged")), (200, Some("0.0001388889")));
    assert_eq!(scene.upstream.last().method, "HEAD");
}

#[test]
fn a_big_body_streams_through() {
    let scene = scene();
    let answer = scene.client.get("/api/big/48").expect(200);
    assert_eq!(answer.body.len(), 48 << 20);
    assert!(answer.body.iter().all(|byte| *byte == b'x'));
}

#[test]
fn an_unmetered_route_needs_no_key_and_costs_nothing() {
    let scene = scene();
    let answer = scene.server.client().get("/api/free").expect(200);
    assert_eq!(answer.header("x-bds-credit-charged"), None);
    let _ = scene.client.get("/api/free").expect(200);
    assert_eq!(scene.upstream.last().headers.get("authorization"), None);
    assert_eq!(balance(&scene.client), "1");
}

#[test]
fn what_is_refused_never_reaches_the_upstream() {
    let scene = scene();
    let anonymous = scene.server.client();
    let table = [
        (&anonymous, "GET", "/api/echo/word", 401),
        (&scene.client, "GET", "/api/nothing", 404),
        (&scene.client, "DELETE", "/api/echo", 405),
        (&scene.client, "GET", "/api/status/many", 400),
        (&scene.client, "GET", "/api/echo?other=1", 400),
        (&scene.client, "GET", "/api/echo/..%2fstatus", 400),
        (&scene.client, "GET", "/api/echo/a;b=c", 400),
        (&scene.client, "GET", "/api/pieces/WHOLE", 400),
        (&scene.client, "GET", "/api/pieces/whole.json", 400),
        (&scene.client, "GET", "/api/pieces/%2577hole", 400),
    ];
    for (client, method, path, status) in table {
        let _ = client.send(method, path, None).expect(status);
    }
    assert_eq!(scene.upstream.seen().len(), 0, "{:?}", scene.upstream.seen());
    assert_eq!(balance(&scene.client), "1");
}

#[test]
fn events_arrive_as_they_are_sent() {
    let scene = scene();
    let mut stream = scene.client.open("/api/events");
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(stream.header("x-bds-credit-charged"), Some("0.01"));
    scene.upstream.wait_for_streams(1);
    for number in 0..20 {
        // The next event is sent only after this one has arrived, so the test would hang if anything buffered.
        scene.upstream.send(&format!("event {number}"));
        let _ = stream.read_until(&format!("data: event {number}\n\n"));
    }
    drop(stream);
    scene.upstream.wait_for_streams(0);
    assert_eq!(balance(&scene.client), "0.99");
}

#[test]
fn a_silent_stream_outlives_the_time_that_an_answer_may_take() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let server = site
        .server()
        .set("METERING_GATEWAY__UPSTREAM_TIMEOUT", "400ms")
        .set("METERING_HTTP__HEADER_TIMEOUT", "400ms")
        .args(["--upstream", &upstream.url()])
        .args(catalogue(&site))
        .start();
    let mut stream = server.client_with(&account.api_key).open("/api/events");
    upstream.wait_for_streams(1);
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    upstream.send("still here");
    let _ = stream.read_until("still here");
}
