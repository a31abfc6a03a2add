//! HTTP/2 connections to one upstream. The requests of a worker share a connection, up to the number of streams that the
//! upstream allows; then the worker opens another one.
//!
//! A connection is driven by a task of the worker that opened it, because no single request could do that.

use std::error::Error as _;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use h2::Reason;
use http::uri::Authority;
use http::{Request, Response, Uri, Version, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;

use super::connection::{Connector, Stream};

type Sender = http2::SendRequest<Full<Bytes>>;
type Driver = http2::Connection<Stream, Full<Bytes>, TokioExecutor>;

/// The maximum number of streams of a connection, even if the upstream allows more.
const STREAMS: usize = 100;

/// How much of a response is read ahead of a client that does not read, in bytes: as over HTTP/1.1.
const STREAM_WINDOW: u32 = 128 << 10;

/// The largest head of a response, in bytes: as over HTTP/1.1.
const HEAD_BYTES: u32 = 128 << 10;

/// Enough for all streams, so that clients that do not read hold up no other.
const CONNECTION_WINDOW: u32 = 100 * STREAM_WINDOW;

/// The HTTP/2 connections to an upstream.
pub(super) struct Http2Connections {
    /// Offers HTTP/2 to the upstream.
    pub(super) connector: Connector,
    /// Whether only HTTP/2 is used.
    pub(super) is_certain: bool,
    /// Whether the upstream has chosen HTTP/2 before.
    is_chosen: AtomicBool,
    /// By the pool's places.
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    open: Mutex<Vec<Open>>,
    /// Held while a connection is opened, so that the requests that wait for one share it.
    opening: tokio::sync::Mutex<()>,
}

/// An open connection.
struct Open {
    sender: Sender,
    streams: Arc<Streams>,
    used: Instant,
}

/// The streams of a connection: each holds a reference to this, and so does the connection.
struct Streams {
    /// How many the upstream allows, as far as its driver knows.
    allowed: AtomicUsize,
    /// Whether its driver has been woken for that.
    is_known: AtomicBool,
    driver: AtomicWaker,
    /// Whether a request has found the connection closed, or about to be.
    is_over: AtomicBool,
}

/// A connection with a free stream.
pub(super) struct SharedConnection {
    sender: Sender,
    stream: OpenStream,
}

/// Counts a stream as open until it is dropped.
pub(super) struct OpenStream {
    streams: Arc<Streams>,
}

/// Why there is no response.
pub(super) struct Unanswered {
    pub(super) error: hyper::Error,
    /// Whether the upstream has certainly not processed the request, so that it may be sent again.
    pub(super) is_unprocessed: bool,
}

impl Http2Connections {
    pub(super) fn new(connector: Connector, is_certain: bool, places: usize) -> Self {
        let places = (0..places).map(|_| Place::default()).collect();
        Self { connector, is_certain, is_chosen: AtomicBool::new(is_certain), places }
    }

    /// A connection with a free stream.
    pub(super) fn take(&self, place: usize) -> Option<SharedConnection> {
        if !self.is_chosen.load(Ordering::Relaxed) {
            return None;
        }
        let mut open = lock(&self.places[place].open);
        open.retain(Open::is_usable);
        let free = open.iter_mut().find(|connection| connection.streams.has_room())?;
        free.used = Instant::now();
        Some(free.share())
    }

    /// If the upstream has chosen HTTP/2 before, waits until no other request of this place is opening a connection, which could
    /// then be shared.
    pub(super) async fn opening(&self, place: usize) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.is_chosen.load(Ordering::Relaxed) {
            true => Some(self.places[place].opening.lock().await),
            false => None,
        }
    }

    /// Begins HTTP/2 on a new connection, and shares it.
    pub(super) async fn handshake(&self, stream: Stream, place: usize) -> hyper::Result<SharedConnection> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD_BYTES);
        let (sender, driver) = builder.handshake::<Stream, Full<Bytes>>(stream).await?;
        let streams = Arc::new(Streams {
            allowed: AtomicUsize::new(STREAMS),
            is_known: AtomicBool::new(false),
            driver: AtomicWaker::new(),
            is_over: AtomicBool::new(false),
        });
        tokio::spawn(drive(driver, Arc::downgrade(&streams)));
        let connection = Open { sender, streams, used: Instant::now() };
        let shared = connection.share();
        lock(&self.places[place].open).push(connection);
        self.is_chosen.store(true, Ordering::Relaxed);
        Ok(shared)
    }

    /// Closes connections that had no stream for `idle`. Streams of closed connections end by themselves.
    pub(super) fn expire(&self, idle: Duration) {
        for place in &self.places {
            let is_used = |connection: &Open| !connection.streams.is_idle() || connection.used.elapsed() < idle;
            lock(&place.open).retain(|connection| connection.is_usable() && is_used(connection));
        }
    }

    /// How many connections are open.
    pub(super) fn count(&self) -> usize {
        self.places.iter().map(|place| lock(&place.open).len()).sum()
    }
}

impl Open {
    fn is_usable(&self) -> bool {
        !self.sender.is_closed() && !self.streams.is_over.load(Ordering::Relaxed)
    }

    fn share(&self) -> SharedConnection {
        SharedConnection { sender: self.sender.clone(), stream: OpenStream { streams: Arc::clone(&self.streams) } }
    }
}

impl Streams {
    fn has_room(self: &Arc<Self>) -> bool {
        // One reference is that of the connection.
        Arc::strong_count(self) <= self.allowed.load(Ordering::Relaxed).clamp(1, STREAMS)
    }

    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    /// The upstream has responded. Its settings, with the number of allowed streams, came before.
    fn responded(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.driver.wake();
        }
    }
}

impl SharedConnection {
    /// Sends a request and waits for the head of the response. `upstream` is the upstream's URL.
    pub(super) async fn send(
        mut self,
        mut request: Request<Full<Bytes>>,
        upstream: &Uri,
    ) -> Result<(Response<Incoming>, OpenStream), Unanswered> {
        address(&mut request, upstream);
        match self.sender.try_send_request(request).await {
            Ok(response) => {
                self.stream.streams.responded();
                Ok((response, self.stream))
            }
            Err(refused) => {
                let reason = h2_error(refused.error());
                if !reason.is_some_and(h2::Error::is_reset) {
                    self.stream.streams.is_over.store(true, Ordering::Relaxed);
                }
                let is_unprocessed = refused.message().is_some() || reason.is_some_and(is_unprocessed);
                Err(Unanswered { error: refused.into_error(), is_unprocessed })
            }
        }
    }
}

/// Drives a connection until it ends, and keeps count of the streams that the upstream allows.
async fn drive(driver: Driver, streams: Weak<Streams>) {
    let mut driver = Box::pin(driver);
    std::future::poll_fn(|context| {
        let streams = streams.upgrade();
        if let Some(streams) = &streams {
            streams.driver.register(context.waker());
        }
        let ended = driver.as_mut().poll(context);
        if let Some(streams) = streams {
            streams.allowed.store(driver.current_max_send_streams(), Ordering::Relaxed);
        }
        // Its error, if it has one, is also that of its streams.
        ended.map(drop)
    })
    .await;
}

/// HTTP/2 has the scheme and the host in the request's URI, and no `Connection` (RFC 9113, section 8.3.1 and 8.2.2).
fn address(request: &mut Request<Full<Bytes>>, upstream: &Uri) {
    // It would remove `te`, which it names, and has no place in HTTP/2.
    request.headers_mut().remove(header::CONNECTION);
    let mut parts = upstream.clone().into_parts();
    let host = request.headers_mut().remove(header::HOST);
    if let Some(host) = host.and_then(|host| Authority::try_from(host.as_bytes()).ok()) {
        parts.authority = Some(host);
    }
    parts.path_and_query = request.uri().path_and_query().cloned();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    *request.version_mut() = Version::HTTP_2;
}

/// Whether the upstream said that it has not processed the request (RFC 9113, section 8.7): it refused the stream, or is
/// closing the connection and named an earlier stream as the last one.
fn is_unprocessed(error: &h2::Error) -> bool {
    let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (error.is_go_away() || is_refused)
}

fn h2_error(error: &hyper::Error) -> Option<&h2::Error> {
    error.source()?.downcast_ref()
}

fn lock(open: &Mutex<Vec<Open>>) -> MutexGuard<'_, Vec<Open>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Http2Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Connections").field("open", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
