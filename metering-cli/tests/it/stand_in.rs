//! A service that responds as the test says and records its requests.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Longer than any test.
pub(crate) const NEVER: Duration = Duration::from_secs(3_600);

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A response to give.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<Piece>,
    late: Duration,
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(Bytes),
    Pause(Duration),
    Break,
}

/// The service, on a free port; dropping it stops it.
pub(crate) struct StandIn {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// What a service does with a request for which the test has not set a response.
type Usual = Box<dyn Fn(&RecordedRequest) -> Reply + Send + Sync>;

#[derive(Default)]
struct Shared {
    /// By target, or by path.
    replies: Mutex<HashMap<String, VecDeque<Reply>>>,
    requests: Mutex<Vec<RecordedRequest>>,
    /// Without it, the last response of a path repeats.
    usual: Option<Usual>,
}

impl RecordedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body; `null` if there is none.
    pub(crate) fn json(&self) -> Value {
        if self.body.is_empty() { Value::Null } else { serde_json::from_slice(&self.body).unwrap() }
    }

    /// The key that it was sent with.
    pub(crate) fn key(&self) -> Option<&str> {
        self.header("authorization").and_then(|value| value.strip_prefix("Bearer "))
    }
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: Vec::new(), body: vec![Piece::Bytes(body.into())], late: Duration::ZERO }
            .header("content-type", "application/json")
    }

    /// A document.
    pub(crate) fn ok(body: impl Into<Bytes>) -> Self {
        Self::new(200, body)
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::ok(body.to_string())
    }

    /// An error of the protocol.
    pub(crate) fn error(status: u16, code: &str) -> Self {
        Self::new(status, json!({ "error": code, "message": format!("The service says {code}.") }).to_string())
    }

    /// An HTML page, as proxies send it.
    pub(crate) fn html(status: u16) -> Self {
        Self::new(status, "<html><body>Bad gateway</body></html>")
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value.to_string()));
        self
    }

    /// Says what the request cost.
    pub(crate) fn charged(self, credits: &str, balance: &str) -> Self {
        self.header("x-bds-credit-charged", credits).header("x-bds-credit-balance", balance)
    }

    /// Starts after this delay.
    pub(crate) fn late(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    /// Continues with another piece after a pause.
    pub(crate) fn then(mut self, pause: Duration, piece: &'static str) -> Self {
        self.body.extend([Piece::Pause(pause), Piece::Bytes(Bytes::from_static(piece.as_bytes()))]);
        self
    }

    /// Breaks the connection before the end of the body, when everything before has left.
    pub(crate) fn cut_off(mut self) -> Self {
        self.body.extend([Piece::Pause(Duration::from_millis(50)), Piece::Break]);
        self
    }

    fn response(self) -> Response {
        let mut response = Response::builder().status(StatusCode::from_u16(self.status).unwrap());
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let pieces = stream::unfold(VecDeque::from(self.body), |mut pieces| async move {
            loop {
                match pieces.pop_front()? {
                    Piece::Bytes(bytes) => return Some((Ok(bytes), pieces)),
                    Piece::Pause(pause) => tokio::time::sleep(pause).await,
                    Piece::Break => return Some((Err(std::io::Error::other("cut off")), pieces)),
                }
            }
        });
        response.body(Body::from_stream(pieces)).unwrap()
    }
}

impl StandIn {
    /// A service that responds with what the test sets. The last response of a path repeats.
    pub(crate) fn start() -> Self {
        Self::listen(Shared::default())
    }

    /// A service that responds as usual where the test has not set a response.
    pub(crate) fn serving(usual: impl Fn(&RecordedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(Shared { usual: Some(Box::new(usual)), ..Shared::default() })
    }

    fn listen(shared: Shared) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(shared);
        let router = axum::Router::new().fallback(respond).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, shared, runtime: Some(runtime) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Responds to a path, or to a target with its query, like this, after the responses set before.
    pub(crate) fn on(&self, path: &str, reply: Reply) -> &Self {
        self.shared.replies.lock().unwrap().entry(path.to_owned()).or_default().push_back(reply);
        self
    }

    /// The same for several responses.
    pub(crate) fn on_each(&self, path: &str, replies: impl IntoIterator<Item = Reply>) -> &Self {
        replies.into_iter().fold(self, |service, reply| service.on(path, reply))
    }

    /// Responds to a path like this from now on.
    pub(crate) fn only(&self, path: &str, reply: Reply) -> &Self {
        self.shared.replies.lock().unwrap().insert(path.to_owned(), VecDeque::from([reply]));
        self
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The requests since the last call.
    pub(crate) fn take_requests(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }

    #[track_caller]
    pub(crate) fn last(&self) -> RecordedRequest {
        self.requests().pop().expect("there was a request")
    }

    /// The targets of all requests so far.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.target).collect()
    }

    /// How many times a path was requested.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.requests().iter().filter(|request| request.path() == path).count()
    }

    /// Waits until `path` was requested this many times.
    pub(crate) fn await_requests(&self, path: &str, count: usize) {
        let start = Instant::now();
        while self.count(path) < count {
            assert!(start.elapsed() < Duration::from_secs(30), "{path}: {:?}", self.targets());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A URL that nothing listens on.
pub(crate) fn closed_url() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn respond(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let target = head.uri.path_and_query().unwrap().as_str().to_owned();
    let request = RecordedRequest { method: head.method.to_string(), target, headers: head.headers, body };
    shared.requests.lock().unwrap().push(request.clone());
    let reply = shared.reply(&request);
    tokio::time::sleep(reply.late).await;
    reply.response()
}

impl Shared {
    fn reply(&self, request: &RecordedRequest) -> Reply {
        let mut replies = self.replies.lock().unwrap();
        let known = [request.target.as_str(), request.path()].into_iter().find(|name| replies.contains_key(*name));
        let queue = known.and_then(|name| replies.get_mut(name));
        if let Some(usual) = &self.usual {
            let set = queue.and_then(VecDeque::pop_front);
            drop(replies);
            return set.unwrap_or_else(|| usual(request));
        }
        match queue {
            Some(queue) if queue.len() > 1 => queue.pop_front().unwrap(),
            Some(queue) => queue.front().unwrap().clone(),
            None => Reply::error(404, "not_found"),
        }
    }
}
