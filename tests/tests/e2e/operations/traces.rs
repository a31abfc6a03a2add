//! Traces: a span for each phase of a charge, sent to a collector by OTLP.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use metering_tests::client::Client;
use metering_tests::ports::free_address;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;
use serde_json::json;

use crate::support::collector::{Collector, hex};
use crate::support::script::{Script, with_length};
use crate::support::upstream::{Upstream, catalogue};
use crate::support::wait::until;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// A gateway whose spans go to a collector.
struct Scene {
    site: Site,
    collector: Collector,
    upstream: Upstream,
    server: Server,
    key: String,
}

impl Scene {
    fn new(credits: &str, more: &[(&str, &str)]) -> Self {
        let (site, collector, upstream) = (Site::new(), Collector::start(), Upstream::start());
        let key = site.account(credits).api_key;
        let setup = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
        let server = more.iter().fold(traced(setup, &collector.url()), |setup, (name, value)| setup.set(name, value));
        Self { site, collector, server: server.start(), upstream, key }
    }

    /// A client that has a trace, which is sampled or not.
    fn client(&self, flags: &str) -> Client {
        caller(self.server.client_with(&self.key), flags)
    }

    /// The `traceparent` that the upstream got last.
    fn passed_on(&self) -> String {
        self.upstream.last().headers["traceparent"].concat()
    }
}

fn traced(setup: ServerSetup, endpoint: &str) -> ServerSetup {
    setup.set("METERING_OTLP__ENDPOINT", endpoint).set("OTEL_BSP_SCHEDULE_DELAY", "50")
}

fn caller(client: Client, flags: &str) -> Client {
    client.with_header("traceparent", &format!("00-{TRACE}-{CALLER}-{flags}")).with_header("tracestate", "acme=1")
}

#[test]
fn charged_request_is_a_trace_from_the_caller_to_the_upstream() {
    let scene = Scene::new("1", &[("METERING_OTLP__AUTHORIZATION", "Bearer of-the-collector")]);
    let client = scene.client("01").with_header("Idempotency-Key", "order-of-alice");
    drop(client.get("/api/echo?q=alice%40example.com").expect(200));
    let trace = scene.collector.trace(TRACE, 9);
    let request = "GET /api/echo";
    let below = |span: &str| format!("{request} > {span}");
    let expected = [
        request.to_owned(),
        below("charge"),
        below("charge > commit"),
        below("charge > queue"),
        below("delivered"),
        below("delivered > commit"),
        below("delivered > queue"),
        below("price"),
        below("upstream"),
    ];
    assert_eq!(trace.paths(), expected);
    assert_eq!(hex(&trace.span(request).parent_span_id), CALLER);
    let attributes = trace.attributes(request);
    let expected = [
        ("http.request.method", "GET"),
        ("http.route", "/api/echo"),
        ("http.response.status_code", "200"),
        ("metering.surface", "gateway"),
    ];
    for (name, value) in expected {
        assert_eq!(attributes.get(name).map(String::as_str), Some(value), "{name}: {attributes:?}");
    }
    assert_eq!(trace.attributes("charge")["metering.decision"], "charged");
    assert_eq!(trace.attributes("upstream")["http.response.status_code"], "200");
    assert_eq!(scene.passed_on(), format!("00-{TRACE}-{}-01", hex(&trace.span("upstream").span_id)));
    assert_eq!(scene.upstream.last().headers["tracestate"], ["acme=1"]);
    assert_eq!(scene.collector.service(), "metering-server");
    for (headers, body) in scene.collector.received() {
        assert_eq!(headers["authorization"], "Bearer of-the-collector");
        let body = String::from_utf8_lossy(&body).into_owned();
        for private in [scene.key.as_str(), "sk_live_", "alice", "org_", "of-the-collector"] {
            assert!(!body.contains(private), "{private}: {body}");
        }
    }
    assert!(!scene.server.log().contains("of-the-collector"));
    scene.site.verify();
}

#[test]
fn refused_and_refunded_requests_have_their_phases() {
    let scene = Scene::new("0.0001", &[]);
    drop(scene.client("01").get("/api/status/503").expect(503));
    let trace = scene.collector.trace(TRACE, 9);
    let request = "GET /api/status/{code}";
    assert!(trace.paths().contains(&format!("{request} > refund > commit")), "{:?}", trace.paths());
    let error = trace.span(request).status.as_ref().unwrap();
    assert_eq!(error.code, 2, "a 503 is an error");

    // The only charge that the balance allows.
    drop(scene.server.client_with(&scene.key).get("/api/echo").expect(200));
    let other = "1af7651916cd43dd8448eb211c80319c";
    let traced = format!("00-{other}-{CALLER}-01");
    drop(scene.server.client_with(&scene.key).with_header("traceparent", &traced).get("/api/echo").expect(402));
    let trace = scene.collector.trace(other, 5);
    let paths = ["", " > charge", " > charge > commit", " > charge > queue", " > price"];
    assert_eq!(trace.paths(), paths.map(|below| format!("GET /api/echo{below}")));
    assert_eq!(trace.attributes("charge")["metering.decision"], "insufficient_credits");
    assert_eq!(trace.attributes("GET /api/echo")["http.response.status_code"], "402");
    assert_eq!(trace.span("GET /api/echo").status.as_ref().map_or(0, |status| status.code), 0);
}

#[test]
fn settled_hold_belongs_to_the_trace_of_its_request() {
    let (site, collector, upstream) = (Site::new(), Collector::start(), Script::start());
    let key = site.account("1").api_key;
    let catalogue = json!({"market": "TEST", "version": 1, "endpoints": [{"path": "/chat", "method": "POST",
        "metered": true, "price": {"max": "0.5", "units": {"tokens": "0.001"}, "report": {"json": {"tokens": "/tokens"}}}}]});
    let file = site.write("chat.json", &catalogue.to_string());
    let setup = site.server().args(["--upstream", &upstream.url(), "--catalogue", file.to_str().unwrap()]);
    let server = traced(setup, &collector.url()).start();
    let steps = json!({"steps": [with_length("200 OK", "Content-Type: application/json\r\n", "{\"tokens\": 7}")]});
    let response = caller(server.client_with(&key), "01").post("/chat", &steps).expect(200);
    assert_eq!(response.header("x-bds-credit-charged"), Some("0.007"));
    let trace = collector.trace(TRACE, 9);
    assert_eq!(trace.attributes("charge")["metering.decision"], "held");
    for span in ["upstream", "settle_hold", "settle_hold > commit"] {
        assert!(trace.paths().contains(&format!("POST /chat > {span}")), "{:?}", trace.paths());
    }
}

#[test]
fn request_that_a_proxy_asks_about_is_named_by_its_route() {
    let more = [("METERING_SURFACES", "authorize"), ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1")];
    let scene = Scene::new("1", &more);
    let proxy = scene.client("01").with_header("X-Forwarded-Method", "GET");
    drop(proxy.with_header("X-Forwarded-Uri", "/api/echo/word").get("/authorize").expect(200));
    let trace = scene.collector.trace(TRACE, 5);
    let paths = ["", " > charge", " > charge > commit", " > charge > queue", " > price"];
    assert_eq!(trace.paths(), paths.map(|below| format!("GET /api/echo/{{word}}{below}")));
    assert_eq!(trace.attributes("GET /api/echo/{word}")["metering.surface"], "authorize");
}

#[test]
fn sampling_is_decided_here_unless_the_caller_is_trusted() {
    // ratio, whether callers are trusted, the caller's flag, whether the trace is recorded
    let table = [
        ("0", "false", "01", false),
        ("0", "true", "01", true),
        ("1", "true", "00", false),
        ("1", "false", "00", true),
    ];
    for (ratio, trust, flag, is_recorded) in table {
        let settings = [("METERING_OTLP__SAMPLE_RATIO", ratio), ("METERING_OTLP__TRUST_CALLER", trust)];
        let Scene { site: _site, collector, upstream, mut server, key } = Scene::new("1", &settings);
        drop(caller(server.client_with(&key), flag).get("/api/echo").expect(200));
        let passed_on = upstream.last().headers["traceparent"].concat();
        assert!(passed_on.starts_with(&format!("00-{TRACE}-")), "{passed_on}");
        assert!(passed_on.ends_with(if is_recorded { "-01" } else { "-00" }), "{ratio} {trust} {flag}: {passed_on}");
        // The last spans are sent before the server ends.
        server.terminate();
        assert!(server.wait().success());
        assert_eq!(!collector.spans().is_empty(), is_recorded, "{ratio} {trust} {flag}");
    }
}

#[test]
fn without_a_collector_configured_the_callers_headers_pass_unchanged() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let key = site.account("1").api_key;
    let setup = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
    let server = setup.set("METERING_LOG__FILTER", "info").start();
    drop(caller(server.client_with(&key), "01").get("/api/echo").expect(200));
    let headers = upstream.last().headers;
    assert_eq!(headers["traceparent"], [format!("00-{TRACE}-{CALLER}-01")]);
    assert_eq!(headers["tracestate"], ["acme=1"]);
}

#[test]
fn collector_that_is_down_or_hangs_delays_neither_requests_nor_the_end() {
    // Accepts connections and never responds.
    let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = free_address();
    for address in [hanging.local_addr().unwrap(), closed] {
        let site = Site::new();
        let key = site.account("1").api_key;
        let mut server = traced(site.server(), &format!("http://{address}")).start();
        let client = server.client_with(&key);
        let started = Instant::now();
        for _ in 0..200 {
            drop(client.get("/mpp/ethPrice").expect(200));
        }
        assert!(started.elapsed() < Duration::from_secs(50), "{:?}", started.elapsed());
        let stopping = Instant::now();
        server.terminate();
        assert!(server.wait().success());
        assert!(stopping.elapsed() < Duration::from_secs(18), "{:?}", stopping.elapsed());
        let log = server.log();
        assert!(!log.contains("ERROR"), "operators are alerted to lines of this level: {log}");
        if address == closed {
            assert_eq!(log.matches("spans cannot be sent to the collector").count(), 1, "{log}");
        }
        site.verify();
    }
}

#[test]
fn wrong_settings_are_refused_at_the_start() {
    let table = [
        ("METERING_OTLP__ENDPOINT", "collector:4317", "otlp.endpoint"),
        ("METERING_OTLP__SAMPLE_RATIO", "2", "otlp.sample_ratio"),
        ("METERING_OTLP__AUTHORIZATION_FILE", "/nowhere/at/all", "otlp.authorization_file"),
    ];
    for (variable, value, key) in table {
        let output = Site::new().server().set(variable, value).run();
        assert!(output.stderr.contains(key), "{}", output.stderr);
    }
}

#[test]
fn log_lines_do_not_have_the_spans() {
    let scene = Scene::new("1", &[("METERING_LOG__FILTER", "debug"), ("METERING_GATEWAY__CONNECT_TIMEOUT", "1s")]);
    drop(scene.upstream);
    let (site, collector, server) = (&scene.site, &scene.collector, &scene.server);
    drop(caller(server.client_with(&scene.key), "01").get("/api/echo").expect(502));
    server.expect_log("the upstream could not be reached");
    assert!(!server.log().contains("http.route"), "{}", server.log());
    until("the spans", || !collector.spans().is_empty());
    site.verify();
}
