//! The HTTP server of a witness (C2SP `tlog-witness`), with limits on what unauthenticated clients can use.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use metering_core::{Clock, SystemClock};
use metering_log::witness::Refusal;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::log::witness::followed::{FollowedLogs, NotCosigned};
use crate::output::notice;

/// Further connections wait until one of them ends.
const MAX_CONNECTIONS: usize = 256;
/// For a request's head, and for the idle time before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// A proof of 63 hashes takes 3 KiB, and a checkpoint with many signatures a little more.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The pause after a failed accept, most likely because the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const ADD_CHECKPOINT: &str = "/add-checkpoint";
const TEXT: &str = "text/plain; charset=utf-8";

type Reply = Response<Full<Bytes>>;

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener, logs: FollowedLogs) -> Infallible {
    let (logs, connections) = (Arc::new(logs), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    loop {
        let permit = Arc::clone(&connections).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let logs = Arc::clone(&logs);
        let service = service_fn(move |request| respond(Arc::clone(&logs), request));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // A broken connection affects only its client.
            let _ = connection.await;
            drop(permit);
        });
    }
}

async fn respond(logs: Arc<FollowedLogs>, request: Request<Incoming>) -> Result<Reply, Infallible> {
    let (head, body) = request.into_parts();
    Ok(match (head.method, head.uri.path()) {
        (Method::POST, ADD_CHECKPOINT) => add_checkpoint(logs, body).await,
        (_, ADD_CHECKPOINT) => text(StatusCode::METHOD_NOT_ALLOWED, "send POST\n"),
        (Method::GET | Method::HEAD, path) => checkpoint(&logs, path).await,
        _ => text(StatusCode::NOT_FOUND, "not found\n"),
    })
}

async fn add_checkpoint(logs: Arc<FollowedLogs>, body: Incoming) -> Reply {
    let body = match timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let problem = format!("the body is larger than {MAX_BODY_BYTES} bytes\n");
            return text(StatusCode::PAYLOAD_TOO_LARGE, problem);
        }
        Ok(Err(_)) => return text(StatusCode::BAD_REQUEST, "the body broke off\n"),
        Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "the body took too long\n"),
    };
    let now = u64::try_from(SystemClock.now().unix_seconds()).unwrap_or_default();
    match spawn_blocking(move || logs.add_checkpoint(&body, now)).await {
        Ok(Ok(cosignature)) => text(StatusCode::OK, cosignature),
        Ok(Err(NotCosigned::Refused(refusal))) => refused(&refusal),
        Ok(Err(NotCosigned::NotKept(failure))) => failed(&failure),
        Err(error) => failed(&error),
    }
}

/// The checkpoint of a log that was cosigned last, for monitors.
async fn checkpoint(logs: &FollowedLogs, path: &str) -> Reply {
    let Some(file) = logs.file(path) else {
        return text(StatusCode::NOT_FOUND, "this witness does not follow that log\n");
    };
    match tokio::fs::read(file).await {
        Ok(kept) => text(StatusCode::OK, kept),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            text(StatusCode::NOT_FOUND, "this witness has not cosigned a checkpoint of this log yet\n")
        }
        Err(error) => failed(&error),
    }
}

fn refused(refusal: &Refusal) -> Reply {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply(status, refusal.content_type(), refusal.body())
}

/// The cause is for the operator of the witness, not for clients.
fn failed(cause: &dyn Display) -> Reply {
    notice(&format!("A request failed: {cause}"));
    text(StatusCode::INTERNAL_SERVER_ERROR, "the witness failed; try again later\n")
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    reply(status, TEXT, body)
}

fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
