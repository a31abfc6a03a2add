//! Several upstreams: which one serves a request, which failures are retried at the next one, and the price of that.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use metering_tests::listener;
use metering_tests::ports::free_address;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use serde_json::{Value, json};

use crate::support::wait::until;
use crate::support::wire::balance;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy";
const PART: &str = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\npart";
const COST: &str = "HTTP/1.1 200 OK\r\nX-Cost: 0.03\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

const TOKENS: &str = "HTTP/1.1 200 OK\r\nX-Tokens: 10\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// An upstream that gives every request the same response, and requests for `/health` another one.
struct Upstream {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    response: &'static str,
    health: &'static str,
    /// The heads of the requests, each with its body, without those for its health.
    heads: Vec<String>,
}

impl Upstream {
    fn start(response: &'static str) -> Self {
        let state = Arc::new(Mutex::new(State { response, health: OK, heads: Vec::new() }));
        let serving = Arc::clone(&state);
        // The server may have gone.
        let address = listener::serve(move |stream| drop(respond(stream, &serving)));
        Self { address, state }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn responds_with(&self, response: &'static str) {
        self.state.lock().unwrap().response = response;
    }

    fn has_health(&self, health: &'static str) {
        self.state.lock().unwrap().health = health;
    }

    fn requests(&self) -> usize {
        self.state.lock().unwrap().heads.len()
    }

    fn last_head(&self) -> String {
        self.state.lock().unwrap().heads.last().expect("a request arrived").to_ascii_lowercase()
    }
}

fn respond(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let Some((mut head, body)) = listener::read_request(&stream)? else { return Ok(()) };
    head.push_str(&String::from_utf8_lossy(&body));
    let response = {
        let mut state = state.lock().unwrap();
        if head.starts_with("GET /health ") {
            state.health
        } else {
            state.heads.push(head);
            state.response
        }
    };
    stream.write_all(response.as_bytes())
}

/// Routes whose first upstream is `first` and whose next one is `second`.
fn catalogue() -> String {
    let both = json!(["first", "second"]);
    let by_usage = json!({"max": "0.5", "report": {"header": "x-cost"}});
    let at_second = json!({"second": {"model": "vendor/small", "max": "1", "units": {"tokens": "0.002"}}});
    let by_model = json!({"max": "0.5", "model": {"json": "/model"}, "report": {"header": {"tokens": "x-tokens"}},
        "models": {"small": {"units": {"tokens": "0.001"}, "upstreams": at_second}}});
    let routes = json!([
        {"path": "/v1/read", "method": "GET", "metered": true, "price": "0.01", "upstream": both},
        {"path": "/v1/write", "method": "POST", "metered": true, "price": "0.01", "upstream": both},
        {"path": "/v1/retry", "method": "POST", "metered": true, "price": "0.01", "upstream": both, "retry": true},
        {"path": "/v1/chat", "method": "POST", "metered": true, "price": by_usage, "upstream": both, "retry": true},
        {"path": "/v1/model", "method": "POST", "metered": true, "price": by_model, "upstream": both, "retry": true},
        {"path": "/v1/second", "method": "GET", "metered": true, "price": "0.01", "upstream": "second"},
        {"path": "/v1/default", "method": "GET", "metered": true, "price": "0.01"},
    ]);
    json!({"market": "TEST", "version": 1, "endpoints": routes}).to_string()
}

struct Scene {
    site: Site,
    default: Upstream,
    server: Server,
    account: IssuedAccount,
}

/// A table of the configuration.
fn table(name: &str, url: &str, more: &str) -> String {
    format!("[[gateway.upstreams]]\nname = '{name}'\nurl = '{url}'\n{more}\n")
}

impl Scene {
    /// A server with these tables.
    fn start(tables: &str) -> Self {
        let (site, default) = (Site::verified(), Upstream::start(OK));
        let account = site.account("2");
        let routes = site.write("routes.json", &catalogue()).display().to_string();
        let file = site.write("metering.toml", tables).display().to_string();
        let flags = ["--config", &file, "--upstream", &default.url(), "--catalogue", &routes];
        let server = site.server().args(flags).set("METERING_LOG__FILTER", "debug").start();
        Self { site, default, server, account }
    }

    fn of(first: &str, second: &str, more_of_first: &str) -> Self {
        Self::start(&(table("first", first, more_of_first) + &table("second", second, "")))
    }

    #[track_caller]
    fn get(&self, path: &str) -> Response {
        self.server.client_with(&self.account.api_key).get(path)
    }

    #[track_caller]
    fn post(&self, path: &str) -> Response {
        self.server.client_with(&self.account.api_key).post(path, &json!({}))
    }

    fn balance(&self) -> String {
        balance(&self.server.client_with(&self.account.api_key))
    }

    /// The document of the request that got this response.
    fn request(&self, response: &Response) -> Value {
        let id = response.header("x-request-id").expect("each response has it");
        self.get(&format!("/requests/{id}")).expect(200).json()
    }
}

#[track_caller]
fn served_by(response: Response, upstream: &str) -> Response {
    let response = response.expect(200);
    assert_eq!(response.header("x-metering-upstream"), Some(upstream), "{:?}", response.headers);
    response
}

#[test]
fn a_refused_connection_goes_on_to_the_next_upstream_and_is_charged_once() {
    let second = Upstream::start(OK);
    let scene = Scene::of(&format!("http://{}", free_address()), &second.url(), "");
    for response in [scene.get("/v1/read"), scene.post("/v1/write"), scene.post("/v1/retry")] {
        let response = served_by(response, "second");
        assert_eq!(response.header("x-bds-credit-charged"), Some("0.01"));
        assert_eq!(scene.request(&response)["upstream"], "second");
    }
    assert_eq!((second.requests(), scene.balance().as_str()), (3, "1.97"));
    second.responds_with(COST);
    let held = served_by(scene.post("/v1/chat"), "second");
    assert_eq!(held.header("x-bds-credit-charged"), Some("0.03"));
    let request = scene.request(&held);
    assert_eq!((request["upstream"].as_str(), request["settled_by"].as_str()), (Some("second"), Some("report")));
    assert_eq!(scene.balance(), "1.94");
}

#[test]
fn an_upstream_has_its_own_name_for_the_model_and_its_own_price() {
    let (first, second) = (Upstream::start(TOKENS), Upstream::start(TOKENS));
    let scene = Scene::of(&first.url(), &second.url(), "eject_after = 0");
    let ask = || scene.server.client_with(&scene.account.api_key).post("/v1/model", &json!({"model": "small"}));
    let response = served_by(ask(), "first");
    assert_eq!(response.header("x-bds-credit-charged"), Some("0.01"));
    assert!(first.last_head().ends_with(r#"{"model":"small"}"#), "{}", first.last_head());
    first.responds_with(BUSY);
    let response = served_by(ask(), "second");
    assert_eq!(response.header("x-bds-credit-charged"), Some("0.02"));
    assert!(second.last_head().ends_with(r#"{"model":"vendor/small"}"#), "{}", second.last_head());
    assert_eq!((scene.request(&response)["upstream"].as_str(), scene.balance().as_str()), (Some("second"), "1.97"));
}

#[test]
fn a_503_goes_on_if_the_request_may_be_sent_twice() {
    let (first, second) = (Upstream::start(BUSY), Upstream::start(OK));
    let scene = Scene::of(&first.url(), &second.url(), "eject_after = 0");
    let _ = served_by(scene.get("/v1/read"), "second");
    let _ = served_by(scene.post("/v1/retry"), "second");
    let refused = scene.post("/v1/write").expect(503);
    assert_eq!((refused.error().as_str(), refused.header("x-bds-credit-charged")), ("upstream_unavailable", Some("0")));
    assert_eq!((first.requests(), second.requests(), scene.balance().as_str()), (3, 2, "1.98"));
    second.responds_with(BUSY);
    let _ = scene.get("/v1/read").expect(503);
    assert_eq!((first.requests(), second.requests(), scene.balance().as_str()), (4, 3, "1.98"), "each got one request");
}

#[test]
fn a_body_that_breaks_off_is_not_replaced() {
    let (first, second) = (Upstream::start(PART), Upstream::start(OK));
    let scene = Scene::of(&first.url(), &second.url(), "");
    let client = scene.server.client_with(&scene.account.api_key);
    for (method, path) in [("GET", "/v1/read"), ("POST", "/v1/retry")] {
        let body = (method == "POST").then_some(&b"{}"[..]);
        assert!(client.try_send(method, path, body).is_err(), "{path}: what has begun is cut off");
    }
    assert_eq!((first.requests(), second.requests(), scene.balance().as_str()), (2, 0, "1.98"));
}

#[test]
fn an_upstream_that_fails_in_a_row_is_ejected_and_comes_back() {
    let (first, second) = (Upstream::start(BUSY), Upstream::start(OK));
    let scene = Scene::of(&first.url(), &second.url(), "eject_after = 2\neject_time = '1s'");
    for _ in 0..2 {
        let _ = served_by(scene.get("/v1/read"), "second");
    }
    scene.server.expect_log("the upstream is ejected after failures in a row");
    let metrics = scene.server.client().get("/metrics").text();
    // metric, labels, value
    let table = [
        ("ejections", &["upstream=\"first\""][..], " 1"),
        ("requests", &["upstream=\"first\"", "outcome=\"failed\""], " 2"),
        ("requests", &["upstream=\"second\"", "outcome=\"served\""], " 2"),
    ];
    for (metric, labels, value) in table {
        let mut lines = metrics.lines().filter(|line| line.starts_with(&format!("metering_upstream_{metric}_total{{")));
        let is_there = lines.any(|line| labels.iter().all(|label| line.contains(label)) && line.ends_with(value));
        assert!(is_there, "{metric} {labels:?}: {metrics}");
    }
    first.responds_with(OK);
    until("the first upstream is back", || {
        scene.get("/v1/read").expect(200).header("x-metering-upstream") == Some("first")
    });
    assert!(scene.server.client().get("/metrics").text().contains("metering_upstream_out{upstream=\"first\"} 0"));
}

#[test]
fn an_upstream_whose_health_checks_fail_gets_no_requests() {
    let (first, second) = (Upstream::start(OK), Upstream::start(OK));
    let scene = Scene::of(&first.url(), &second.url(), "health = '/health'\nhealth_interval = '1s'");
    let _ = served_by(scene.post("/v1/write"), "first");
    first.has_health(BUSY);
    scene.server.expect_log("health checks fail");
    let _ = served_by(scene.post("/v1/write"), "second");
    assert!(scene.server.client().get("/metrics").text().contains("metering_upstream_out{upstream=\"first\"} 1"));
    first.has_health(OK);
    scene.server.expect_log("the upstream is healthy again");
    let _ = served_by(scene.post("/v1/write"), "first");
    assert_eq!((first.requests(), second.requests()), (2, 1), "checks are not requests of customers");
}

#[test]
fn each_upstream_gets_its_own_credentials_and_a_reload_takes_new_ones() {
    let (first, second) = (Upstream::start(OK), Upstream::start(OK));
    let site = Site::new();
    let key = site.write("key", "key-of-second\n");
    let header = format!("headers.authorization = {{ file = '{}', prefix = 'Bearer ' }}", key.display());
    let default = "[gateway.upstream_headers]\nx-default = 'key-of-default'\n";
    let tables = |second_url: &str| {
        table("first", &first.url(), "headers.x-first = 'key-of-first'") + &table("second", second_url, &header)
    };
    let scene = Scene::start(&(tables(&second.url()) + default));
    let _ = served_by(scene.get("/v1/read"), "first");
    let _ = served_by(scene.get("/v1/second"), "second");
    let plain = scene.get("/v1/default").expect(200);
    assert_eq!((plain.header("x-metering-upstream"), &scene.request(&plain)["upstream"]), (None, &Value::Null));
    let heads = [first.last_head(), second.last_head(), scene.default.last_head()];
    for (index, sent) in ["x-first: key-of-first", "authorization: bearer key-of-second", "x-default: key-of-default"]
        .into_iter()
        .enumerate()
    {
        assert!(heads[index].contains(&format!("\r\n{sent}\r\n")), "{}", heads[index]);
        assert_eq!(heads[index].matches("key-of-").count(), 1, "{}", heads[index]);
    }

    site.write("key", "key-of-the-new-second");
    scene.server.hang_up();
    scene.server.expect_log("gateway.upstreams");
    let _ = served_by(scene.get("/v1/second"), "second");
    assert!(second.last_head().contains("\r\nauthorization: bearer key-of-the-new-second\r\n"));
    let third = Upstream::start(OK);
    scene.site.write("metering.toml", &(tables(&third.url()) + default));
    scene.server.hang_up();
    until("the second upstream is at its new address", || {
        let _ = served_by(scene.get("/v1/second"), "second");
        third.requests() > 0
    });
    // A reload that would leave routes without their upstream changes nothing.
    scene.site.write("metering.toml", &table("first", &first.url(), ""));
    scene.server.hang_up();
    scene.server.expect_log("there is no upstream \"second\" in gateway.upstreams");
    let _ = served_by(scene.get("/v1/second"), "second");
    assert!(!scene.server.log().contains("key-of-"), "no credentials are logged");
}

#[test]
fn a_catalogue_with_an_unknown_upstream_does_not_start() {
    let site = Site::new();
    let routes = site.write("routes.json", &catalogue()).display().to_string();
    let file = site.write("metering.toml", &table("first", "http://127.0.0.1:9", "")).display().to_string();
    let refused = format!("{:?}", site.server().args(["--config", &file, "--catalogue", &routes]).run());
    assert!(refused.contains("route GET /v1/read") && refused.contains("there is no upstream"), "{refused}");
}
