//! A metered service behind each proxy: what is served is charged, and nothing else is served.

use std::net::SocketAddr;

use metering_tests::client::Client;
use metering_tests::load::{Stop, request, run};
use metering_tests::proxies::{Kind, Proxy};
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::Value;

use super::proxy::{is_skipped, start};
use crate::support::upstream::{Upstream, catalogue};
use crate::support::wire::{BASE_CALL, CREDIT, amount, balance, plan_with_long_timeout, usage_events};

/// A page that may call, and one that may not.
const PAGE: &str = "https://app.example";
const ELSEWHERE: &str = "https://evil.example";

/// How many connections send requests concurrently.
const CONNECTIONS: usize = 64;

struct Fixture {
    site: Site,
    upstream: Upstream,
    server: Server,
    proxy: Proxy,
}

impl Fixture {
    fn client(&self, key: &str) -> Client {
        Client::new(self.proxy.address()).with_key(key)
    }
}

#[track_caller]
fn fixture(kind: Kind, file: &str) -> Option<Fixture> {
    if is_skipped() {
        return None;
    }
    let (site, upstream) = (Site::new(), Upstream::start());
    let setup = site.server().args(catalogue(&site)).args(["--surfaces", "metering,authorize"]);
    let setup = setup.set("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1").set("METERING_HTTP__ALLOWED_ORIGINS", PAGE);
    let keys = site.path("receipts.pem").display().to_string();
    assert_eq!(site.admin(&["receipt-key", "create", &keys]).code, Some(0));
    let setup = setup.set("METERING_RECEIPTS__KEY_FILE", &keys).set("METERING_PUBLIC_URL", "http://127.0.0.1");
    let server = setup.start();
    let service: SocketAddr = upstream.url().trim_start_matches("http://").parse().unwrap();
    let proxy = start(kind, file, server.address(), service);
    Some(Fixture { site, upstream, server, proxy })
}

/// A request is served and charged, and the service can rely on the account's name.
fn serves(kind: Kind, file: &str) {
    let Some(fixture) = fixture(kind, file) else { return };
    let account = fixture.site.account("1");
    let client = fixture.client(&account.api_key);
    // The same id twice: the proxy replaces what clients send.
    let forging = client.clone().with_header("X-Request-Id", "mine").with_header("X-Metering-Org-Id", "org_forged");
    let forging = forging.with_header("Prefer", "metering-receipt");
    for calls in 1..=2 {
        let response = forging.get("/api/echo/word").expect(200);
        assert_eq!(response.header("x-bds-credit-balance"), Some(&*amount(CREDIT - calls * BASE_CALL)));
        assert_eq!(response.header("x-bds-credit-charged"), Some(&*amount(BASE_CALL)));
        let receipt = response.header("metering-receipt").unwrap_or_default();
        assert_eq!(receipt.split('.').count(), 6, "{receipt}");
        let balances = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-bds-credit-balance"));
        assert_eq!(balances.count(), 1, "the service's own is removed");
        let seen = fixture.upstream.last();
        let of = |name: &str| seen.headers.get(name).cloned().unwrap_or_default();
        assert_eq!(of("x-metering-org-id"), *std::slice::from_ref(&account.org_id));
        assert_eq!(of("authorization"), [] as [&str; 0]);
    }
    let body = b"{\"a\": [1, 2]}";
    let response = client.send("POST", "/api/echo?q=x", Some(body)).expect(200);
    assert_eq!(response.body, body);
    assert_eq!(fixture.upstream.last().target, "/api/echo?q=x");
    let large = vec![b'x'; 1_500_000];
    assert_eq!(client.send("POST", "/api/echo", Some(&large)).expect(200).body.len(), large.len());
    let free = client.get("/api/free").expect(200);
    let own = ["x-bds-credit-charged", "x-bds-credit-balance", "payment-response", "metering-receipt"];
    assert_eq!(own.map(|name| free.header(name)), [None; 4], "metering said none of these");
    assert_eq!(free.header("access-control-allow-origin"), None);
    assert_eq!(fixture.upstream.last().headers.get("x-metering-org-id"), None);
    // Otherwise a service could open a connection on which nothing is metered.
    let tunnelling = client.with_header("Connection", "Upgrade, HTTP2-Settings").with_header("Upgrade", "h2c");
    let _ = tunnelling.with_header("HTTP2-Settings", "AAMAAABkAAQAAP__").get("/api/free").expect(200);
    assert_eq!(fixture.upstream.last().headers.get("upgrade"), None);
    let direct = fixture.server.client_with(&account.api_key);
    assert_eq!(balance(&direct), amount(CREDIT - 4 * BASE_CALL), "the free route costs nothing");
    fixture.site.verify();
}

/// A refusal is the client's response, with its body, and reaches no service.
fn refuses(kind: Kind, file: &str) {
    let Some(fixture) = fixture(kind, file) else { return };
    let (rich, poor) = (fixture.site.account("1"), fixture.site.account("0"));
    let capped = fixture.site.account_with_caps("1", 1, 0);
    let (rich, poor) = (fixture.client(&rich.api_key), fixture.client(&poor.api_key));
    let capped = fixture.client(&capped.api_key);
    let _ = capped.get("/api/echo/word").expect(200);
    let seen = fixture.upstream.seen().len();
    let strangers = Client::new(fixture.proxy.address());
    let overriding = rich.clone().with_header("X-HTTP-Method-Override", "DELETE");
    let contradicting =
        rich.clone().with_header("X-Forwarded-Uri", "/api/free").with_header("X-Original-URI", "/api/free");
    // client, target, status, code
    let table = [
        (&strangers, "/api/echo/word", 401, "unauthorized"),
        (&poor, "/api/echo/word", 402, "insufficient_credits"),
        (&capped, "/api/echo/word", 429, "rate_limited"),
        (&rich, "/api/unheard-of", 404, "unknown_route"),
        (&rich, "/api/echo/%77ord", 400, "invalid_parameter"),
        (&rich, "/api/echo?q=1;q=2", 400, "invalid_parameter"),
        (&overriding, "/api/echo/word", 400, "validation_failed"),
    ];
    for (client, target, status, code) in table {
        let refused = client.get(target);
        assert_eq!((refused.status, refused.error().as_str()), (status, code), "{target}: {}", refused.text());
        assert_eq!(refused.header("content-type"), Some("application/json"), "{target}");
    }
    assert!(poor.get("/api/echo/word").json()["plans"].is_array(), "a 402 has its body");
    assert!(capped.get("/api/echo/word").header("retry-after").is_some());
    let stranger = strangers.get("/api/echo/word");
    assert_eq!(stranger.json()["error"], Value::from("unauthorized"));
    assert_eq!(values(&stranger, "www-authenticate"), ["Bearer"], "once");
    assert_eq!(fixture.upstream.seen().len(), seen, "nothing reached the service");
    // A client that sends the proxy's own headers is refused, or they are ignored.
    let response = contradicting.get("/api/echo/word");
    let charged = response.header("x-bds-credit-charged").map(str::to_owned);
    assert!(response.status == 400 || charged == Some(amount(BASE_CALL)), "{}", response.text());
    fixture.site.verify();
}

/// The values of a header, one for each line.
fn values<'r>(response: &'r Response, name: &str) -> Vec<&'r str> {
    let lines = response.headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
    lines.map(|(_, value)| value.as_str()).collect()
}

/// A page of an allowed origin calls the service, and reads what it gets; its preflight reaches no service.
fn lets_pages_call(kind: Kind, file: &str) {
    let Some(fixture) = fixture(kind, file) else { return };
    let account = fixture.site.account("1");
    let asks = |origin: &str| {
        let client = Client::new(fixture.proxy.address()).with_header("Origin", origin);
        let client = client.with_header("Access-Control-Request-Method", "POST");
        client.with_header("Access-Control-Request-Headers", "x-api-key").send("OPTIONS", "/api/echo?q=x", None)
    };
    let preflight = asks(PAGE);
    assert!((200..300).contains(&preflight.status), "{} {}", preflight.status, fixture.proxy.log());
    assert_eq!(values(&preflight, "access-control-allow-origin"), [PAGE]);
    assert_eq!(values(&preflight, "access-control-allow-methods"), ["POST"]);
    assert_eq!(values(&preflight, "access-control-allow-headers"), ["x-api-key"]);
    let refused = asks(ELSEWHERE);
    assert!(refused.status >= 400 && values(&refused, "access-control-allow-origin").is_empty(), "{refused:?}");
    assert_eq!(fixture.upstream.seen().len(), 0, "nothing reached the service");
    let page = fixture.client(&account.api_key).with_header("Origin", PAGE);
    let responses = [
        page.send("POST", "/api/echo?q=x", Some(b"{}")).expect(200),
        page.get("/api/unheard-of").expect(404),
        Client::new(fixture.proxy.address()).with_header("Origin", PAGE).get("/api/echo/word").expect(401),
    ];
    for response in responses {
        assert_eq!(values(&response, "access-control-allow-origin"), [PAGE], "{response:?}");
        assert_eq!(values(&response, "access-control-expose-headers"), ["*"], "{response:?}");
        assert!(values(&response, "vary").join(",").to_ascii_lowercase().contains("origin"), "{response:?}");
    }
    let other = fixture.client(&account.api_key).with_header("Origin", ELSEWHERE).get("/api/echo/word").expect(200);
    assert!(values(&other, "access-control-allow-origin").is_empty(), "{other:?}");
    fixture.site.verify();
}

/// Under load, with credits for half of the requests: what is served is what is charged. When metering is killed,
/// nothing more is served.
fn charges_exactly(kind: Kind, file: &str) {
    let Some(fixture) = fixture(kind, file) else { return };
    let account = fixture.site.account("0.1");
    let paid_for = u64::try_from(CREDIT / 10 / BASE_CALL).unwrap();
    let call = request("GET", "/api/echo/word", Some(&account.api_key), &[]);
    let plan =
        plan_with_long_timeout(fixture.proxy.address(), CONNECTIONS, Stop::AfterRequests(2 * paid_for), vec![call]);
    let result = run(plan);
    assert_eq!(result.errors, 0, "{:?}: {}", result.first_error, fixture.proxy.log());
    assert_eq!((result.with_status(200), result.with_status(402)), (paid_for, paid_for), "{:?}", result.by_status);
    assert_eq!(fixture.upstream.seen().len(), usize::try_from(paid_for).unwrap());
    let direct = fixture.server.client_with(&account.api_key);
    assert_eq!((balance(&direct), usage_events(&direct)), (amount(0), paid_for));
    fixture.site.verify();

    let account = fixture.site.account("1");
    let client = fixture.client(&account.api_key);
    let _ = client.get("/api/echo/word").expect(200);
    fixture.server.kill();
    let seen = fixture.upstream.seen().len();
    for _ in 0..5 {
        let refused = client.get("/api/echo/word");
        assert!((500..600).contains(&refused.status), "{}", refused.status);
    }
    assert_eq!(fixture.upstream.seen().len(), seen, "nothing is served");
    fixture.site.verify();
}

macro_rules! behind {
    ($($name:ident: $kind:expr, $file:expr;)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn requests_are_served_and_charged() {
                serves($kind, $file);
            }

            #[test]
            fn refusals_reach_the_client_with_their_body() {
                refuses($kind, $file);
            }

            #[test]
            fn pages_of_allowed_origins_call() {
                lets_pages_call($kind, $file);
            }

            #[test]
            fn charges_are_exact_under_load_and_nothing_is_served_without_metering() {
                charges_exactly($kind, $file);
            }
        })*
    };
}

behind! {
    nginx: Kind::Nginx, "nginx.conf";
    caddy: Kind::Caddy, "Caddyfile";
    haproxy: Kind::Haproxy, "haproxy.cfg";
    envoy: Kind::Envoy, "envoy.yaml";
    envoy_over_grpc: Kind::Envoy, "envoy-grpc.yaml";
}
