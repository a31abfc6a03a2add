//! Connections to an upstream that closes them, breaks off or stays silent.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::*;
use crate::http::Workers;

/// The upstream's reaction to the next request that it reads.
#[derive(Clone, Copy)]
enum Step {
    /// Responds with this text, and keeps the connection open.
    Respond(&'static str),
    /// Responds with this text, and closes the connection.
    RespondAndClose(&'static str),
    /// Closes the connection without a response.
    Close,
    /// Responds with this text, and then sends nothing more.
    Hang(&'static str),
}

const WORKERS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// An upstream that follows a script across all its connections.
struct Upstream {
    http: HttpUpstream,
    /// The requests that it read, each after the number of its connection.
    requests: mpsc::UnboundedReceiver<(usize, String)>,
}

impl Upstream {
    async fn new(path: &str, steps: &[Step]) -> Self {
        Self::with_timeout("60s", path, steps).await
    }

    async fn with_timeout(timeout: &str, path: &str, steps: &[Step]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}{path}", listener.local_addr().unwrap())).unwrap();
        let (script, requests) = mpsc::unbounded_channel();
        let (queue, steps_left) = mpsc::unbounded_channel();
        steps.iter().for_each(|step| queue.send(*step).unwrap());
        let steps_left = Arc::new(tokio::sync::Mutex::new(steps_left));
        tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(follow(stream, number, Arc::clone(&steps_left), script.clone()));
            }
        });
        let config = GatewayConfig { upstream_timeout: timeout.parse().unwrap(), ..GatewayConfig::default() };
        Self { http: HttpUpstream::new(&url, None, (&config, Http2::Auto), WORKERS).unwrap(), requests }
    }

    async fn call(&self, method: Method, body: &'static str) -> Result<String, ErrorCode> {
        let request = Request::builder().method(method).uri("/price?a=1").body(()).unwrap();
        let (head, ()) = request.into_parts();
        let response = self.http.call(&head, Bytes::from(body), false).await.map_err(|problem| problem.code())?;
        let body = response.into_body().collect().await.map_err(|_| ErrorCode::InternalError)?;
        Ok(String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }

    /// The numbers of the connections that have carried requests.
    fn connections(&mut self) -> Vec<usize> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).map(|(number, _)| number).collect()
    }
}

async fn follow(
    mut stream: TcpStream,
    number: usize,
    steps: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Step>>>,
    requests: mpsc::UnboundedSender<(usize, String)>,
) {
    let mut read = Vec::new();
    loop {
        let mut bytes = [0; 4096];
        let Ok(length @ 1..) = stream.read(&mut bytes).await else { return };
        read.extend_from_slice(&bytes[..length]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
        if body.len() < length {
            continue;
        }
        read.clear();
        requests.send((number, text)).unwrap();
        let step = steps.lock().await.recv().await.unwrap_or(Step::Close);
        match step {
            Step::Respond(text) => stream.write_all(text.as_bytes()).await.unwrap(),
            Step::RespondAndClose(text) => return stream.write_all(text.as_bytes()).await.unwrap(),
            Step::Close => return,
            Step::Hang(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                std::future::pending::<()>().await;
            }
        }
    }
}

#[tokio::test]
async fn connection_is_reused_after_its_response_is_read() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    let trailers = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n2\r\nok\r\n0\r\nx: 1\r\n\r\n";
    let unavailable = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy";
    let steps = [OK, chunked, trailers, empty, unavailable, OK].map(Step::Respond);
    let mut upstream = Upstream::new("", &steps).await;
    for expected in [Ok("ok"), Ok("ok"), Ok("ok"), Ok(""), Err(ErrorCode::UpstreamUnavailable), Ok("ok")] {
        assert_eq!(upstream.call(Method::GET, "").await, expected.map(str::to_owned));
    }
    assert_eq!(upstream.connections(), [0; 6]);
}

#[tokio::test]
async fn connection_is_not_reused_if_its_response_is_not_read() {
    let mut upstream = Upstream::new("", &[Step::Respond(OK), Step::Respond(OK)]).await;
    let request = Request::get("/price").body(()).unwrap();
    drop(upstream.http.exchange(&request.into_parts().0, Bytes::new()).await.unwrap());
    assert_eq!(upstream.call(Method::GET, "").await.unwrap(), "ok");
    assert_eq!(upstream.connections(), [0, 1]);
}

#[tokio::test]
async fn upstream_may_close_idle_connections_at_any_time() {
    let mut upstream = Upstream::new("", &[Step::RespondAndClose(OK), Step::Respond(OK)]).await;
    assert_eq!(upstream.call(Method::POST, "body").await.unwrap(), "ok");
    while upstream.http.pool.idle_connections() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        upstream.http.pool.expire();
    }
    assert_eq!(upstream.call(Method::POST, "body").await.unwrap(), "ok");
    assert_eq!(upstream.connections(), [0, 1], "the closed connection was noticed before the request was sent");
}

#[tokio::test]
async fn idempotent_request_is_retried_once() {
    // The upstream reads the second request, then closes the connection without a response.
    let mut upstream = Upstream::new("", &[Step::Respond(OK), Step::Close, Step::Respond(OK), Step::Close]).await;
    assert_eq!(upstream.call(Method::GET, "").await.unwrap(), "ok");
    assert_eq!(upstream.call(Method::GET, "").await.unwrap(), "ok");
    assert_eq!(upstream.connections(), [0, 0, 1]);
    let mut upstream = Upstream::new("", &[Step::Respond(OK), Step::Close, Step::Close, Step::Respond(OK)]).await;
    assert_eq!(upstream.call(Method::GET, "").await.unwrap(), "ok");
    assert_eq!(upstream.call(Method::GET, "").await, Err(ErrorCode::UpstreamUnreachable));
    assert_eq!(upstream.connections(), [0, 0, 1]);
}

#[tokio::test]
async fn non_idempotent_request_is_not_retried() {
    let mut upstream = Upstream::new("", &[Step::Respond(OK), Step::Close, Step::Respond(OK)]).await;
    assert_eq!(upstream.call(Method::POST, "body").await.unwrap(), "ok");
    assert_eq!(upstream.call(Method::POST, "body").await, Err(ErrorCode::UpstreamUnreachable));
    assert_eq!(upstream.connections(), [0, 0]);
}

#[tokio::test]
async fn invalid_or_truncated_response_is_not_retried() {
    for broken in ["HTTP/9.9 huh\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"] {
        let steps = [Step::Respond(OK), Step::RespondAndClose(broken), Step::Respond(OK)];
        let mut upstream = Upstream::new("", &steps).await;
        assert_eq!(upstream.call(Method::GET, "").await.unwrap(), "ok");
        assert_eq!(upstream.call(Method::GET, "").await, Err(ErrorCode::UpstreamUnreachable), "{broken}");
        assert_eq!(upstream.connections(), [0, 0], "{broken}");
    }
}

#[tokio::test]
async fn silent_upstream_times_out() {
    let table = [
        ("", ErrorCode::UpstreamTimeout),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", ErrorCode::UpstreamTimeout),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart", ErrorCode::InternalError),
        ("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n", ErrorCode::InternalError),
    ];
    let calls = table.map(|(sent, error)| async move {
        // Long enough for a busy machine to pass on what is sent.
        let upstream = Upstream::with_timeout("3s", "", &[Step::Hang(sent)]).await;
        let response = timeout(Duration::from_secs(60), upstream.call(Method::GET, "")).await;
        assert_eq!(response.expect("it ends"), Err(error), "{sent}");
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test]
async fn request_has_the_host_and_path_prefix_of_the_upstream() {
    let mut upstream = Upstream::new("/base/", &[Step::Respond(OK)]).await;
    assert_eq!(upstream.call(Method::POST, "body").await.unwrap(), "ok");
    let (_, text) = upstream.requests.try_recv().unwrap();
    let host = upstream.http.host.to_str().unwrap();
    assert!(text.starts_with(&format!("POST /base/price?a=1 HTTP/1.1\r\nhost: {host}\r\n")), "{text}");
    assert!(text.contains("content-length: 4\r\n") && text.ends_with("\r\n\r\nbody"), "{text}");
}

#[tokio::test]
async fn idle_connections_are_limited_and_expire() {
    let upstream = Upstream::new("", &[Step::Respond(OK); 3]).await;
    let pool = &upstream.http.pool;
    let opened = [pool.connect().await.unwrap(), pool.connect().await.unwrap(), pool.connect().await.unwrap()];
    let (elsewhere, max_idle) = (Uri::from_static("http://127.0.0.1:1"), NonZeroUsize::new(5).unwrap());
    let limited = Pool::new(elsewhere, Duration::from_secs(1), Http2::Auto, max_idle, WORKERS).unwrap();
    opened.into_iter().for_each(|connection| limited.put(connection));
    assert_eq!(limited.idle_connections(), 2);
    limited.expire();
    assert_eq!(limited.idle_connections(), 2, "they are new");
    tokio::time::pause();
    tokio::time::advance(pool::MAX_IDLE).await;
    assert!(limited.take().is_none(), "they expired");
}

#[tokio::test]
async fn connection_is_only_reused_by_the_worker_that_opened_it() {
    let upstream = Upstream::new("", &[]).await;
    let pool = &upstream.http.pool;
    let workers = Workers::start(WORKERS).unwrap();
    let (give, opened) = oneshot::channel();
    let opening = Arc::clone(pool);
    let task = workers.spawn(async move {
        let connection = opening.connect().await.unwrap();
        give.send((Workers::place(), connection)).ok().unwrap();
    });
    let (opener, connection) = opened.await.unwrap();
    task.await.unwrap();
    // As when a response is read to its end by a task of the main runtime.
    pool.put(connection);
    assert_eq!(pool.idle_connections(), 1);
    assert!(pool.take().is_none(), "this thread is not the worker");
    // A connection each, because both are open at the same time.
    let (mut takers, mut open) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (report, taken) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        let taking = Arc::clone(pool);
        drop(workers.spawn(async move {
            report.send((Workers::place(), taking.take().is_some())).unwrap();
            let _ = ended.await;
        }));
        takers.push(taken.await.unwrap());
        open.push(end);
    }
    takers.sort_unstable();
    assert_eq!(takers, [(1, opener == 1), (2, opener == 2)]);
}
