//! The connections to the upstream that wait for their next request.
//!
//! A connection is only used by the worker that opened it, because its socket belongs to that worker's runtime: for
//! another worker, each of its events would wake two threads.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use http::Uri;
use http::uri::Scheme;
use hyper_rustls::ConfigBuilderExt;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use rustls::ClientConfig;
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

use super::connection::{Connector, UpstreamConnection};
use super::http2::{Http2Connections, SharedConnection};
use super::upstream_error::UpstreamError;
use crate::config::Http2;
use crate::http::Workers;

/// Idle connections are closed after this time. Many servers close them sooner; `HttpUpstream::exchange` handles that.
pub(super) const MAX_IDLE: Duration = Duration::from_secs(60);

/// After this time without traffic, and as often again, the kernel checks that the upstream is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The names of protocols (ALPN).
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// Idle connections, and since when they are. The most recently used is at the back, and is reused first, so under light
/// load the others expire.
type Idle = VecDeque<(UpstreamConnection, Instant)>;

/// Opens connections to one upstream, and keeps those that are idle.
pub(super) struct Pool {
    connector: Connector,
    upstream: Uri,
    connect_timeout: Duration,
    /// For each place.
    max_idle: usize,
    /// By place: first those that were opened outside of workers, then those of each worker.
    idle: Vec<Mutex<Idle>>,
    /// Those over HTTP/2, unless the upstream is never asked for that.
    pub(super) http2: Option<Box<Http2Connections>>,
}

/// A new connection, or one over HTTP/2 that another request has opened.
pub(super) enum Opened {
    Http1(UpstreamConnection),
    Http2(SharedConnection),
}

impl Pool {
    /// A pool whose `workers` may keep `max_idle` connections together, and each at least one.
    ///
    /// # Errors
    /// When the system's certificates cannot be read.
    pub(super) fn new(
        upstream: Uri,
        connect_timeout: Duration,
        http2: Http2,
        max_idle: NonZeroUsize,
        workers: NonZeroUsize,
    ) -> io::Result<Self> {
        Ok(Self::trusting(&tls()?, upstream, connect_timeout, http2, max_idle, workers))
    }

    /// The same with this TLS.
    pub(super) fn trusting(
        tls: &ClientConfig,
        upstream: Uri,
        connect_timeout: Duration,
        http2: Http2,
        max_idle: NonZeroUsize,
        workers: NonZeroUsize,
    ) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Divided among the addresses of a name, so that one dead address does not use up all the time.
        tcp.set_connect_timeout(Some(connect_timeout));
        // Ends a stream whose upstream lost power or network, which nothing else would detect.
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(3));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(KEEPALIVE * 2));
        let max_idle = (max_idle.get() / workers).max(1);
        let idle: Vec<_> = (0..=workers.get()).map(|_| Mutex::default()).collect();
        let protocols: &[&[u8]] = match http2 {
            Http2::Auto if is_https(&upstream) => &[HTTP2, HTTP1],
            Http2::Auto | Http2::Never => &[],
            Http2::Always => &[HTTP2],
        };
        let http2 = (!protocols.is_empty()).then(|| {
            let connector = Connector::from((tcp.clone(), offering(tls, protocols)));
            Box::new(Http2Connections::new(connector, http2 == Http2::Always, idle.len()))
        });
        let connector = Connector::from((tcp, offering(tls, &[HTTP1])));
        Self { connector, upstream, connect_timeout, max_idle, idle, http2 }
    }

    /// The upstream's URL, without a path.
    pub(super) const fn upstream(&self) -> &Uri {
        &self.upstream
    }

    /// A connection of this worker over HTTP/2 that can take another request.
    pub(super) fn shared(&self) -> Option<SharedConnection> {
        self.http2.as_ref()?.take(self.place())
    }

    /// An idle connection of this worker that the upstream has not closed, as far as this worker knows.
    pub(super) fn take(&self) -> Option<UpstreamConnection> {
        let idle = &self.idle[self.place()];
        loop {
            let (mut connection, since) = lock(idle).pop_back()?;
            if since.elapsed() < MAX_IDLE && connection.is_idle() {
                return Some(connection);
            }
        }
    }

    /// Opens a connection, over HTTP/2 if that is configured and the upstream offers it.
    pub(super) async fn open(&self) -> Result<Opened, UpstreamError> {
        let Some(http2) = &self.http2 else { return self.connect().await.map(Opened::Http1) };
        let place = self.place();
        let opened = async {
            let _opening = http2.opening(place).await;
            if let Some(shared) = http2.take(place) {
                return Ok(Opened::Http2(shared));
            }
            let stream = http2.connector.clone().oneshot(self.upstream.clone()).await;
            let stream = stream.map_err(UpstreamError::Connect)?;
            if stream.connected().is_negotiated_h2() || (http2.is_certain && !is_https(&self.upstream)) {
                return Ok(Opened::Http2(http2.handshake(stream, place).await?));
            }
            if http2.is_certain {
                return Err(UpstreamError::Connect("the upstream does not offer HTTP/2".into()));
            }
            Ok(Opened::Http1(UpstreamConnection::handshake(stream, place).await?))
        };
        timeout(self.connect_timeout, opened).await.unwrap_or(Err(UpstreamError::ConnectTimedOut))
    }

    /// Opens a connection over HTTP/1.1.
    pub(super) async fn connect(&self) -> Result<UpstreamConnection, UpstreamError> {
        let opened = async {
            let stream = self.connector.clone().oneshot(self.upstream.clone()).await;
            let stream = stream.map_err(UpstreamError::Connect)?;
            Ok(UpstreamConnection::handshake(stream, self.place()).await?)
        };
        timeout(self.connect_timeout, opened).await.unwrap_or(Err(UpstreamError::ConnectTimedOut))
    }

    /// Keeps a connection that is idle, for the worker that opened it.
    pub(super) fn put(&self, connection: UpstreamConnection) {
        let mut idle = lock(&self.idle[connection.place]);
        idle.push_back((connection, Instant::now()));
        if idle.len() > self.max_idle {
            let oldest = idle.pop_front();
            drop(idle);
            drop(oldest);
        }
    }

    /// Closes expired connections, and those that the upstream has closed.
    pub(super) fn expire(&self) {
        if let Some(http2) = &self.http2 {
            http2.expire(MAX_IDLE);
        }
        for idle in &self.idle {
            let mut expired = Vec::new();
            let mut idle = lock(idle);
            for (mut connection, since) in std::mem::take(&mut *idle) {
                // Its worker cannot drive it at the same time: that would need the lock too.
                if since.elapsed() < MAX_IDLE && connection.is_idle() {
                    idle.push_back((connection, since));
                } else {
                    expired.push(connection);
                }
            }
            // Closing them takes system calls, which should not delay requests.
            drop(idle);
            drop(expired);
        }
    }

    #[cfg(test)]
    pub(super) fn idle_connections(&self) -> usize {
        self.idle.iter().map(|idle| lock(idle).len()).sum()
    }

    /// The index of this thread's list.
    fn place(&self) -> usize {
        let place = Workers::place();
        // Only workers of another server could have a larger number.
        if place < self.idle.len() { place } else { 0 }
    }
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_https(upstream: &Uri) -> bool {
    upstream.scheme() == Some(&Scheme::HTTPS)
}

/// The same TLS configuration, offering these protocols (ALPN, RFC 7301). Some servers choose the protocol by ALPN.
fn offering(tls: &ClientConfig, protocols: &[&[u8]]) -> ClientConfig {
    let mut offered = tls.clone();
    offered.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    offered
}

/// TLS that trusts what the system trusts.
fn tls() -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let verified = builder.and_then(ConfigBuilderExt::try_with_platform_verifier).map_err(io::Error::other)?;
    Ok(verified.with_no_client_auth())
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("upstream", &self.upstream)
            .field("idle", &self.idle.iter().map(|idle| lock(idle).len()).sum::<usize>())
            .field("http2", &self.http2)
            .finish_non_exhaustive()
    }
}
