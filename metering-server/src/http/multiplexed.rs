//! HTTP/2: many requests share a connection.
//!
//! hyper has neither a timeout for idle connections nor one for responses that a client does not read, so a watch does
//! both. Requests are handed over as if they had come over HTTP/1.1: handlers read the `Host` header.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Uri, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use metering_core::wire::ErrorCode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::config::HttpConfig;
use crate::http::{Connection, Problem, Response, Shutdown, into_response};
use crate::operations::metrics;

/// How many requests of a connection are served at a time. Clients wait with further ones.
const MAX_STREAMS: u32 = 100;
/// Flow control windows for request bodies, which are small.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 256 * 1024;
/// How much of a response is buffered while its client does not read.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// A response that waits for its client this many write timeouts is not read, although others on its connection are. A
/// shorter wait may be that of many large responses for a slow network.
const MAX_WRITE_TIMEOUTS: u32 = 10;
/// How long a closing connection may take.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Serves HTTP/2 connections.
#[derive(Debug, Clone)]
pub(super) struct Multiplexed {
    http: http2::Builder<TokioExecutor>,
    /// Requests in flight on all connections. Without this, a full set of connections could carry a hundred times as
    /// many requests, and each may need a connection to the upstream.
    requests: Arc<Semaphore>,
    idle_timeout: Duration,
    write_timeout: Duration,
}

/// The requests that share a connection.
#[derive(Debug)]
struct Requests {
    connection: Connection,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    /// The requests in flight: since when each waits for its client to read, if it does.
    blocked_since: HashMap<u64, Option<Instant>>,
    next: u64,
    idle_since: Instant,
    /// When a response was last sent in part.
    progress_at: Instant,
}

/// A request in flight, until its response is sent.
#[derive(Debug)]
struct ActiveRequest {
    requests: Arc<Requests>,
    id: u64,
    _permit: OwnedSemaphorePermit,
}

/// A response body that keeps its request in flight, and ends when it is cut.
struct Sending {
    body: UnsyncBoxBody<Bytes, BodyError>,
    in_progress: ActiveRequest,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Why the watch closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expired {
    Idle,
    NotRead,
}

impl Multiplexed {
    /// For at most `max_requests` requests at a time.
    pub(super) fn new(config: &HttpConfig, max_requests: usize) -> Self {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buf_size(SEND_BUFFER_BYTES)
            .max_header_list_size(u32::try_from(config.max_header_bytes).unwrap_or(u32::MAX));
        Self {
            http,
            requests: Arc::new(Semaphore::new(max_requests.min(Semaphore::MAX_PERMITS))),
            idle_timeout: config.header_timeout.duration(),
            write_timeout: config.write_timeout.duration(),
        }
    }

    /// Serves a connection until its client closes it, it is idle for too long, or shutdown.
    pub(super) async fn serve<S, H, F>(
        self,
        stream: S,
        connection: Connection,
        handler: H,
        shutdown: Shutdown,
    ) -> hyper::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        H: Fn(Request<Incoming>, Connection) -> F + Send + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        connection.is_shared();
        let requests = Arc::new(Requests::new(connection));
        let (sharing, permits) = (Arc::clone(&requests), self.requests);
        let service = service_fn(move |request| {
            let responding = begin(&sharing, &permits).map(|in_progress| {
                let connection = sharing.connection.of_request();
                (handler(as_http1(request), connection.clone()), connection, in_progress)
            });
            async move {
                Ok::<_, std::convert::Infallible>(match responding {
                    Some((response, connection, in_progress)) => sending(response.await, &connection, in_progress),
                    None => overloaded(),
                })
            }
        });
        let mut serving = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let expired = tokio::select! {
            served = serving.as_mut() => return served,
            () = shutdown.cancelled() => None,
            expired = requests.expired(self.idle_timeout, self.write_timeout) => Some(expired),
        };
        if expired == Some(Expired::NotRead) {
            metrics::connection_closed("write_timeout");
            return Ok(());
        }
        // Tells the client which requests are still served, so that it sends others again elsewhere.
        serving.as_mut().graceful_shutdown();
        match expired {
            Some(_) => tokio::time::timeout(CLOSE_GRACE, serving).await.unwrap_or(Ok(())),
            // The listener waits for as long as the configuration allows.
            None => tokio::select! {
                served = serving.as_mut() => served,
                () = requests.stalled(self.write_timeout) => Ok(()),
            },
        }
    }
}

impl Requests {
    fn new(connection: Connection) -> Self {
        let now = Instant::now();
        let open = Open { blocked_since: HashMap::new(), next: 0, idle_since: now, progress_at: now };
        Self { connection, open: Mutex::new(open) }
    }

    /// Resolves when the connection should be closed.
    async fn expired(&self, idle: Duration, write: Duration) -> Expired {
        loop {
            tokio::time::sleep((idle.min(write) / 8).max(Duration::from_millis(50))).await;
            let open = self.open();
            if open.is_unread(write) {
                return Expired::NotRead;
            }
            if open.blocked_since.is_empty() && open.idle_since.elapsed() >= idle {
                return Expired::Idle;
            }
        }
    }

    /// Resolves when the client does not read a response.
    async fn stalled(&self, write: Duration) {
        loop {
            tokio::time::sleep((write / 8).max(Duration::from_millis(50))).await;
            if self.open().is_unread(write) {
                return;
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn is_unread(&self, write_timeout: Duration) -> bool {
        let blocked = self.blocked_since.values().flatten().map(Instant::elapsed).max().unwrap_or_default();
        let stalled = self.progress_at.elapsed() >= write_timeout;
        (stalled && blocked >= write_timeout) || blocked >= write_timeout * MAX_WRITE_TIMEOUTS
    }
}

/// Counts a request; `None` when it must not be served.
fn begin(requests: &Arc<Requests>, permits: &Arc<Semaphore>) -> Option<ActiveRequest> {
    let permit = Arc::clone(permits).try_acquire_owned().ok()?;
    let mut open = requests.open();
    if open.blocked_since.is_empty() && !requests.connection.begins() {
        return None;
    }
    let id = open.next;
    open.next += 1;
    open.blocked_since.insert(id, None);
    drop(open);
    Some(ActiveRequest { requests: Arc::clone(requests), id, _permit: permit })
}

impl ActiveRequest {
    /// Records whether the response waits for its client to read.
    fn is_blocked(&self, blocked: bool) {
        let (mut open, now) = (self.requests.open(), Instant::now());
        open.blocked_since.insert(self.id, blocked.then_some(now));
        open.progress_at = now;
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut open = self.requests.open();
        open.blocked_since.remove(&self.id);
        if open.blocked_since.is_empty() {
            open.idle_since = Instant::now();
            self.requests.connection.rests();
        }
    }
}

/// The request as HTTP/1.1 would have it: `Host`, one `Cookie` header, and a target without an authority (RFC 9113,
/// section 8).
fn as_http1<B>(mut request: Request<B>) -> Request<B> {
    let authority = request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    if let Some(Ok(authority)) = authority {
        request.headers_mut().insert(header::HOST, authority);
    }
    if request.headers().get_all(header::COOKIE).iter().nth(1).is_some() {
        let crumbs: Vec<_> = request.headers().get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
        if let Ok(cookie) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
            request.headers_mut().insert(header::COOKIE, cookie);
        }
    }
    if let Some(target) = request.uri().path_and_query() {
        *request.uri_mut() = Uri::from(target.clone());
    }
    *request.version_mut() = http::Version::HTTP_11;
    request
}

fn sending(response: Response, connection: &Connection, in_progress: ActiveRequest) -> Response {
    // Until hyper reads more, it waits for the client.
    in_progress.is_blocked(true);
    let cut = Box::pin(connection.was_cut());
    response.map(|body| Sending { body, in_progress, cut }.boxed_unsync())
}

fn overloaded() -> Response {
    let message = "The server is busy; nothing was charged. Try again in a second.";
    into_response(Problem::new(ErrorCode::Overloaded, message).retry_after(1).into_reply())
}

impl Body for Sending {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.cut.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err("the stream has ended".into())));
        }
        let next = Pin::new(&mut self.body).poll_frame(context);
        self.in_progress.is_blocked(next.is_ready());
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    fn requests() -> Arc<Requests> {
        let connection = Connection::new();
        connection.is_shared();
        Arc::new(Requests::new(connection))
    }

    #[test]
    fn requests_look_like_those_of_http1() {
        let request = Request::get("https://api.example:8443/a?b=c").header("cookie", "a=1").header("cookie", "b=2");
        let request = as_http1(request.header("host", "other.example").body(()).unwrap());
        assert_eq!(request.uri(), "/a?b=c");
        assert_eq!(request.headers()["host"], "api.example:8443", "the authority is what counts");
        assert_eq!(request.headers().get_all("cookie").iter().collect::<Vec<_>>(), ["a=1; b=2"]);
        assert_eq!(request.version(), http::Version::HTTP_11);
    }

    #[test]
    fn connection_is_closed_to_make_room_only_while_no_request_is_in_progress() {
        let (requests, permits) = (requests(), Arc::new(Semaphore::new(2)));
        let [one, two] = [begin(&requests, &permits), begin(&requests, &permits)];
        assert!(one.is_some() && two.is_some());
        assert!(begin(&requests, &permits).is_none(), "the server is at its limit");
        requests.connection.waits();
        assert!(!requests.connection.cut_if_unproductive(), "nothing more was received, but requests are served");
        drop(one);
        assert!(!requests.connection.cut_if_unproductive());
        drop(two);
        assert!(requests.connection.cut_if_unproductive());
        assert!(begin(&requests, &permits).is_none(), "it is being closed");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_and_unread_responses_expire() {
        let (requests, permits) = (requests(), Arc::new(Semaphore::new(9)));
        let (idle, write) = (Duration::from_secs(15), Duration::from_secs(30));
        let started = Instant::now();
        assert_eq!(requests.expired(idle, write).await, Expired::Idle);
        assert!(started.elapsed() >= idle && started.elapsed() < idle * 2);

        let in_progress = begin(&requests, &permits).unwrap();
        let waited = tokio::time::timeout(10 * write, requests.expired(idle, write)).await;
        assert!(waited.is_err(), "the handler takes its time");
        let response = Response::new(Full::from("read me").map_err(|never| match never {}).boxed_unsync());
        let _unread = sending(response, &Connection::new(), in_progress);
        let started = Instant::now();
        assert_eq!(requests.expired(idle, write).await, Expired::NotRead);
        assert!(started.elapsed() >= write && started.elapsed() < write * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_unread_response_beside_others_is_tolerated_for_a_while() {
        let (requests, permits, write) = (requests(), Arc::new(Semaphore::new(9)), Duration::from_secs(30));
        let [unread, read] = [begin(&requests, &permits).unwrap(), begin(&requests, &permits).unwrap()];
        unread.is_blocked(true);
        let reading = async {
            loop {
                read.is_blocked(true);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let started = Instant::now();
        tokio::select! {
            expired = requests.expired(write, write) => assert_eq!(expired, Expired::NotRead),
            () = reading => {}
        }
        assert!(started.elapsed() >= 10 * write && started.elapsed() < 11 * write, "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn cutting_a_request_ends_its_response_only() {
        let (requests, permits) = (requests(), Arc::new(Semaphore::new(9)));
        let (one, two) = (requests.connection.of_request(), requests.connection.of_request());
        let mut bodies = [&one, &two].map(|connection| {
            let pending = http_body_util::StreamBody::new(futures_util::stream::pending());
            let body: Response = Response::new(BodyExt::boxed_unsync(pending));
            sending(body, connection, begin(&requests, &permits).unwrap()).into_body()
        });
        one.cut();
        assert!(bodies[0].frame().await.unwrap().is_err());
        let other = tokio::time::timeout(Duration::from_millis(50), bodies[1].frame()).await;
        assert!(other.is_err(), "still open");
    }
}
