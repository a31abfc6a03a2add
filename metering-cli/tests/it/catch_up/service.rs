//! A service with blocks that fails as the test says.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures_util::{StreamExt, stream};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The path of the latest block; with a number appended, of that block.
pub(crate) const BLOCKS: &str = "/mpp/snapshot/allTrades";
/// A route that responds with a stream.
pub(crate) const STREAM: &str = "/mpp/stream/allTrades";

const CATALOGUE: &str = include_str!("../../../metering-sample/routes.json");

/// The service. Dropping it closes its connections and its port.
pub(crate) struct Service {
    address: SocketAddr,
    state: Arc<Mutex<Content>>,
    _runtime: Runtime,
}

#[derive(Default)]
struct Content {
    latest: u64,
    delay: Duration,
    scripts: BTreeMap<String, VecDeque<Reply>>,
    requests: Vec<Request>,
}

/// A request that it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) target: String,
    pub(crate) last_event_id: Option<String>,
}

/// A response that it gives once, instead of a block.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A status, with Retry-After, and a body.
    Status(u16, Option<u64>, String),
    /// The head of a good response, and no more.
    CutOff,
    /// A good response, late.
    Late(Duration),
    /// Events.
    Events(Vec<Piece>),
}

/// A piece of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Data(String),
    /// The rest comes after a while.
    Pause(Duration),
    /// The connection breaks off.
    Break,
}

impl Service {
    /// A service with the blocks up to this one.
    pub(crate) fn at(latest: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let state = Arc::new(Mutex::new(Content { latest, ..Content::default() }));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(respond).with_state(Arc::clone(&state));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, state, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets the chain grow, or restores it to an earlier state.
    pub(crate) fn is_at(&self, latest: u64) {
        self.content().latest = latest;
    }

    /// Delays every response from now on.
    pub(crate) fn delay(&self, delay: Duration) {
        self.content().delay = delay;
    }

    /// Responds to the next request for a target with this; later requests get the next scripted response, or the usual
    /// one.
    pub(crate) fn then(&self, target: &str, reply: Reply) -> &Self {
        self.content().scripts.entry(target.to_owned()).or_default().push_back(reply);
        self
    }

    /// The same for the route of a block.
    pub(crate) fn then_at(&self, block: u64, reply: Reply) -> &Self {
        self.then(&format!("{BLOCKS}/{block}"), reply)
    }

    /// The requests for its metered routes since the last call.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.content().requests)
    }

    /// The blocks that were requested since the last call; `None` is the latest.
    pub(crate) fn requested(&self) -> Vec<Option<u64>> {
        let number = |request: Request| request.target.strip_prefix(BLOCKS)?.strip_prefix('/')?.parse().ok();
        self.requests().into_iter().map(number).collect()
    }

    /// Waits for a request.
    pub(crate) fn wait_for(&self, target: &str) {
        let start = std::time::Instant::now();
        while !self.content().requests.iter().any(|request| request.target == target) {
            assert!(start.elapsed() < Duration::from_secs(30), "{target} was not requested");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.state.lock().unwrap()
    }
}

impl Reply {
    /// An error in the protocol's form.
    pub(crate) fn error(status: u16, code: &str, retry_after: Option<u64>) -> Self {
        let retry = retry_after.map(|seconds| format!(r#","retry_after_sec":{seconds}"#)).unwrap_or_default();
        Self::Status(status, retry_after, format!(r#"{{"error":"{code}","message":"It says {code}."{retry}}}"#))
    }

    /// A response that says that no credits are left.
    pub(crate) fn no_credits() -> Self {
        let body = r#"{"error":"insufficient_credits","message":"No credits.","credit_balance":-0.0000694444}"#;
        Self::Status(402, None, body.to_owned())
    }

    /// A good response with another body.
    pub(crate) fn body(body: &str) -> Self {
        Self::Status(200, None, body.to_owned())
    }

    /// A stream that continues without end after these events.
    pub(crate) fn events(events: &[&str]) -> Self {
        let mut pieces = Self::pieces(events);
        pieces.push(Piece::Pause(Duration::from_secs(3_600)));
        Self::Events(pieces)
    }

    /// A stream that breaks off after these events.
    pub(crate) fn broken(events: &[&str]) -> Self {
        let mut pieces = Self::pieces(events);
        pieces.push(Piece::Break);
        Self::Events(pieces)
    }

    /// A stream that ends after these events.
    pub(crate) fn ended(events: &[&str]) -> Self {
        Self::Events(Self::pieces(events))
    }

    fn pieces(events: &[&str]) -> Vec<Piece> {
        events.iter().map(|event| Piece::Data((*event).to_owned())).collect()
    }
}

/// The document of a block, with numbers that no float can hold.
pub(crate) fn document(block: u64) -> String {
    format!(
        r#"{{"sample":true,"block_number":{block},"price":0.10000000000000000001{block},"big":98765432109876543210}}"#
    )
}

/// The lines of consecutive blocks.
pub(crate) fn lines(blocks: std::ops::RangeInclusive<u64>) -> String {
    blocks.map(|block| document(block) + "\n").collect()
}

async fn respond(State(state): State<Arc<Mutex<Content>>>, headers: HeaderMap, uri: Uri) -> Response {
    let target = uri.path_and_query().unwrap().as_str().to_owned();
    if target == "/endpoints.json" {
        return Response::new(CATALOGUE.into());
    }
    assert!(headers["authorization"].to_str().unwrap().starts_with("Bearer sk_live_"));
    assert_eq!(headers["x-bds-client-source"], "cli");
    let last_event_id = headers.get("last-event-id").map(|id| id.to_str().unwrap().to_owned());
    let (reply, latest, delay) = {
        let mut content = state.lock().unwrap();
        content.requests.push(Request { target: target.clone(), last_event_id });
        let reply = content.scripts.get_mut(&target).and_then(VecDeque::pop_front);
        (reply, content.latest, content.delay)
    };
    tokio::time::sleep(delay).await;
    match reply {
        None => block(&target, latest),
        Some(Reply::Late(late)) => {
            tokio::time::sleep(late).await;
            block(&target, latest)
        }
        Some(Reply::Status(status, retry_after, body)) => {
            let mut response = Response::builder().status(status).header("content-type", "application/json");
            if let Some(seconds) = retry_after {
                response = response.header("retry-after", seconds);
            }
            if status == 200 {
                response = charged(response);
            }
            response.body(body.into()).unwrap()
        }
        Some(Reply::CutOff) => charged(Response::builder().header("content-length", 1_000))
            .body(pieces(vec![Piece::Data("{\"block_number\":".to_owned()), Piece::Break]))
            .unwrap(),
        Some(Reply::Events(events)) => {
            charged(Response::builder().header("content-type", "text/event-stream")).body(pieces(events)).unwrap()
        }
    }
}

fn block(target: &str, latest: u64) -> Response {
    let number = match target.strip_prefix(BLOCKS) {
        Some("") => Some(latest),
        Some(rest) => rest.strip_prefix('/').and_then(|number| number.parse().ok()),
        None => None,
    };
    match number {
        Some(number) if number <= latest => charged(Response::builder()).body(document(number).into()).unwrap(),
        Some(_) => {
            let body = r#"{"error":"block_not_final","message":"The block is not final yet."}"#;
            Response::builder().status(404).body(body.into()).unwrap()
        }
        None => Response::builder().status(404).body(r#"{"error":"unknown_route","message":"No."}"#.into()).unwrap(),
    }
}

fn charged(response: axum::http::response::Builder) -> axum::http::response::Builder {
    response.header("x-bds-credit-charged", "0.0001388889").header("x-bds-credit-balance", "1.2345678901")
}

fn pieces(pieces: Vec<Piece>) -> Body {
    let arrive = |piece| async {
        match piece {
            Piece::Data(data) => Some(Ok(Bytes::from(data))),
            // Wait until everything sent before has left.
            Piece::Break => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some(Err(std::io::Error::other("broken off by the test")))
            }
            Piece::Pause(pause) => {
                tokio::time::sleep(pause).await;
                None
            }
        }
    };
    Body::from_stream(stream::iter(pieces).filter_map(arrive))
}
