//! An HTTP service behind the gateway: a plain axum program without any code for metering.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::stream;
use metering_tests::server::Server;
use metering_tests::site::{IssuedAccount, Site};
use tokio::runtime::Runtime;
use tokio::sync::broadcast;

/// How long to wait for an expected event.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running service.
pub(crate) struct Upstream {
    address: SocketAddr,
    state: Shared,
    _runtime: Runtime,
}

/// A request as it reached the service.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: HashMap<String, Vec<String>>,
    pub(crate) body: Vec<u8>,
}

#[derive(Clone)]
struct Shared {
    log: Arc<(Mutex<Log>, Condvar)>,
    events: broadcast::Sender<String>,
}

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
    open_streams: usize,
    open_bodies: usize,
}

/// Counts a stream as open until the service drops it.
struct OpenStream(Shared);

/// Counts a large body as open until the service drops it.
struct OpenBody(Shared);

impl Upstream {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let state = Shared { log: Arc::default(), events: broadcast::channel(64).0 };
        let routes = Router::new()
            .route("/api/echo", any(echo))
            .route("/api/echo/{word}", any(echo))
            .route("/api/free", any(echo))
            .route("/api/page", get(page))
            .route("/api/worker", get(worker))
            .route("/api/status/{code}", get(status))
            .route("/api/moved", get(moved))
            .route("/api/big/{mib}", get(big))
            .route("/api/slow/{millis}", get(slow))
            .route("/api/events", get(events))
            .layer(from_fn_with_state(state.clone(), note))
            .with_state(state.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, state, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request that reached it.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.log.0.lock().unwrap().seen.clone()
    }

    /// The last request that reached it.
    pub(crate) fn last(&self) -> Seen {
        self.seen().pop().expect("a request reached the upstream")
    }

    /// Waits until a request for this target has reached it.
    pub(crate) fn wait_for(&self, target: &str) {
        self.wait(|log| log.seen.iter().any(|seen| seen.target == target));
    }

    /// Waits until `count` event streams are open.
    pub(crate) fn wait_for_streams(&self, count: usize) {
        self.wait(|log| log.open_streams == count);
    }

    /// How many large bodies it is sending.
    pub(crate) fn open_bodies(&self) -> usize {
        self.state.log.0.lock().unwrap().open_bodies
    }

    /// Waits until it is sending `count` large bodies.
    pub(crate) fn wait_for_bodies(&self, count: usize) {
        self.wait(|log| log.open_bodies == count);
    }

    /// Sends an event to each open stream.
    pub(crate) fn send(&self, event: &str) {
        self.state.events.send(event.to_owned()).expect("a stream is open");
    }

    #[track_caller]
    fn wait(&self, mut reached: impl FnMut(&Log) -> bool) {
        let (log, changed) = &*self.state.log;
        let waited = changed.wait_timeout_while(log.lock().unwrap(), TIMEOUT, |log| !reached(log)).unwrap();
        assert!(!waited.1.timed_out(), "{} streams, {:?}", waited.0.open_streams, waited.0.seen);
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log.0.lock().unwrap());
        self.log.1.notify_all();
    }
}

impl Drop for OpenBody {
    fn drop(&mut self) {
        self.0.change(|log| log.open_bodies -= 1);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.change(|log| log.open_streams -= 1);
    }
}

/// A service, and a server with its catalogue in front of it, which has an account with these credits.
#[track_caller]
pub(crate) fn served(credits: &str) -> (Site, Upstream, IssuedAccount, Server) {
    let (site, upstream) = (Site::verified(), Upstream::start());
    let account = site.account(credits);
    let server = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site)).start();
    (site, upstream, account, server)
}

/// Writes a catalogue of the service's routes, and returns the server's flags for it.
pub(crate) fn catalogue(site: &Site) -> [OsString; 2] {
    let route = |method: &str, path: &str, param: Option<(&str, &str, &str)>, rest: &str| {
        let params = param.map(|(name, place, kind)| {
            format!("{{\"name\":\"{name}\",\"in\":\"{place}\",\"type\":\"{kind}\",\"required\":{}}}", place == "path")
        });
        let params = params.unwrap_or_default();
        format!("{{\"path\":\"{path}\",\"method\":\"{method}\",\"description\":\"\",\"params\":[{params}],{rest}}}")
    };
    const METERED: &str = "\"metered\":true,\"sse\":false,\"credit_weight\":1";
    let stream = "\"metered\":true,\"sse\":true,\"credit_weight\":1,\
                  \"billing_modifier\":{\"type\":\"stream_session\",\"credits_per_connection\":0.01}";
    let routes = [
        route("GET", "/api/echo/{word}", Some(("word", "path", "string")), METERED),
        route("GET", "/api/echo", Some(("q", "query", "string")), METERED),
        route("POST", "/api/echo", Some(("q", "query", "string")), METERED),
        route("HEAD", "/api/echo", None, METERED),
        route("GET", "/api/status/{code}", Some(("code", "path", "integer")), METERED),
        route("GET", "/api/pieces/{piece}", Some(("piece", "path", "string")), METERED),
        route("GET", "/api/pieces/whole", None, "\"metered\":true,\"credit_weight\":1000"),
        route("GET", "/api/moved", None, METERED),
        route("GET", "/api/big/{mib}", Some(("mib", "path", "integer")), METERED),
        route("GET", "/api/slow/{millis}", Some(("millis", "path", "integer")), METERED),
        route("GET", "/api/free", None, "\"metered\":false,\"sse\":false,\"credit_weight\":1"),
        route("GET", "/api/page", None, "\"metered\":false,\"sse\":false"),
        route("GET", "/api/worker", None, "\"metered\":false,\"sse\":false"),
        route("GET", "/api/events", None, stream),
    ];
    let text = format!("{{\"market\":\"TEST\",\"version\":1,\"endpoints\":[{}]}}", routes.join(","));
    let path = site.write("catalogue.json", &text);
    ["--catalogue".into(), path.into()]
}

async fn note(State(state): State<Shared>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let mut headers = HashMap::<_, Vec<_>>::new();
    for (name, value) in &head.headers {
        headers.entry(name.to_string()).or_default().push(String::from_utf8_lossy(value.as_bytes()).into_owned());
    }
    let (method, target) = (head.method.to_string(), head.uri.to_string());
    state.change(|log| log.seen.push(Seen { method, target, headers, body: body.to_vec() }));
    next.run(Request::from_parts(head, Body::from(body))).await
}

/// Responds with the request's body and headers of every kind.
async fn echo(body: Bytes) -> impl IntoResponse {
    let headers = [
        ("x-upstream", "yes"),
        ("etag", "\"v1\""),
        ("content-type", "text/x-echo"),
        ("set-cookie", "session=1"),
        ("service-worker-allowed", "/"),
        ("clear-site-data", "\"*\""),
        ("alt-svc", "h3=\":443\""),
        ("strict-transport-security", "max-age=31536000"),
        ("refresh", "0; url=https://elsewhere.example"),
        ("content-security-policy", "script-src *"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("x-metering-org-id", "org_forged"),
        ("x-bds-credit-balance", "1000000"),
        ("metering-receipt", "of another request"),
        ("ratelimit", "\"forged\";r=1"),
    ];
    (headers, body)
}

/// A document that displays everything its origin has stored.
async fn page() -> impl IntoResponse {
    let html = "<!doctype html><title>an upstream page</title>\
                <script>document.title = JSON.stringify({...sessionStorage})</script>";
    ([("content-type", "text/html")], html)
}

/// A service worker that requests the whole origin as its scope.
async fn worker() -> impl IntoResponse {
    ([("content-type", "text/javascript"), ("service-worker-allowed", "/")], "self.onfetch = () => {};")
}

async fn status(Path(code): Path<u16>) -> impl IntoResponse {
    (StatusCode::from_u16(code).unwrap(), [("x-upstream", "yes"), ("retry-after", "7")], format!("status {code}"))
}

async fn moved() -> impl IntoResponse {
    (StatusCode::FOUND, [("location", "/api/echo")], "elsewhere")
}

/// A body of this many MiB, in pieces.
async fn big(State(state): State<Shared>, Path(mib): Path<u32>) -> Body {
    state.change(|log| log.open_bodies += 1);
    let open = OpenBody(state);
    let pieces = (0..mib * 16).map(move |_| {
        let _open = &open;
        Ok::<_, Infallible>(Bytes::from(vec![b'x'; 65_536]))
    });
    Body::from_stream(stream::iter(pieces))
}

async fn slow(Path(millis): Path<u64>) -> &'static str {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    "at last"
}

/// The events that the test sends, one piece each.
async fn events(State(state): State<Shared>) -> impl IntoResponse {
    let receiver = state.events.subscribe();
    state.change(|log| log.open_streams += 1);
    let open = OpenStream(state);
    let events = stream::unfold((receiver, open), |(mut receiver, open)| async move {
        let event = receiver.recv().await.ok()?;
        Some((Ok::<_, Infallible>(Bytes::from(format!("data: {event}\n\n"))), (receiver, open)))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(events))
}
