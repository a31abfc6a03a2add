//! The accept loop: connection limits, TLS, timeouts for slow and idle connections, and graceful shutdown.
//!
//! Used instead of `warp::serve`, which has no timeouts and no connection limit.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::config::{HttpConfig, TrustedProxies};
use crate::http::client_stream::ClientStream;
use crate::http::connections::{ConnectionPermit, Connections};
use crate::http::multiplexed::Multiplexed;
use crate::http::tls::{self, Tls};
use crate::http::workers::Workers;
use crate::http::{ClientAddress, Connection, Response, ResponseFuture, Shutdown};

/// The pause after a failed accept, most likely because the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections that the operating system queues until they are accepted. A full queue delays new ones by seconds.
const BACKLOG: u32 = 4_096;
/// TCP keepalive: idle time, probe interval, and number of failed probes before the connection is dropped.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(15), 4);
/// The connection preface of HTTP/2 clients with prior knowledge (RFC 9113, section 3.4). No HTTP/1.1 method begins
/// like it.
const HTTP2_PREFACE: [u8; 3] = *b"PRI";
/// How many unsent bytes the operating system buffers per client. With a buffer of megabytes, a client that reads
/// nothing would go unnoticed, and a slow client would free buffer space in steps further apart than the write timeout.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_MAX_BYTES: u32 = 64 * 1024;

/// Responds to requests. One type for all listeners, so that the serving of connections is compiled once.
pub(crate) type Handler = Arc<dyn Fn(Request<Incoming>) -> ResponseFuture + Send + Sync>;

/// Tells a connection to finish. The listener waits until every connection has dropped its own.
type Watcher = watch::Receiver<()>;

/// Serves a connection, on the worker that has it.
type Serve = Box<dyn FnOnce(ClientStream) -> BoxFuture<'static, hyper::Result<()>> + Send>;

/// A bound address with its limits and timeouts.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    protocols: Protocols,
    connections: Arc<Connections>,
    proxies: Arc<TrustedProxies>,
    write_timeout: Duration,
    grace: Duration,
}

/// How connections are served.
#[derive(Debug, Clone)]
struct Protocols {
    tls: Option<Tls>,
    http1: http1::Builder,
    http2: Multiplexed,
    header_timeout: Duration,
    /// Whether the connection comes from a trusted proxy. These may use HTTP/2 without TLS, as Envoy does for gRPC.
    is_from_proxy: bool,
}

impl Listener {
    /// Binds `address`, a host and a port, for at most `connections` connections, with TLS if there is a certificate.
    ///
    /// # Errors
    /// When the address cannot be bound, for example because another process has it.
    pub(crate) async fn bind(
        address: &str,
        connections: NonZeroUsize,
        config: &HttpConfig,
        tls: Option<Tls>,
    ) -> std::io::Result<Self> {
        let write_timeout = config.write_timeout.duration();
        let socket = listen(address, write_timeout).await?;
        let header_timeout = config.header_timeout.duration();
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(config.max_header_bytes)
            // A client may half-close after sending its request and still wait for the response.
            .half_close(true);
        let http2 = Multiplexed::new(config, connections.get());
        let protocols = Protocols { tls, http1, http2, header_timeout, is_from_proxy: false };
        let connections = Arc::new(Connections::new(connections.get(), config.max_connections_per_address.get()));
        let proxies = Arc::new(config.trusted_proxies.clone());
        Ok(Self { socket, protocols, connections, proxies, write_timeout, grace: config.shutdown_grace.duration() })
    }

    /// The bound address.
    ///
    /// # Errors
    /// When the operating system cannot tell.
    pub(crate) fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts connections until `shutdown`, and has each served by one of the `workers`. Each request gets its
    /// [`ClientAddress`] and its [`Connection`](super::Connection) as extensions. On shutdown, requests in progress may
    /// finish within the configured grace period.
    pub(crate) async fn serve(self, handler: Handler, workers: Arc<Workers>, shutdown: Shutdown) {
        let (connections, _) = watch::channel(());
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = shutdown.cancelled() => break,
            };
            let Some((stream, peer, permit)) = accepted else { continue };
            let (proxies, handler) = (Arc::clone(&self.proxies), Arc::clone(&handler));
            let handler = move |mut request: Request<Incoming>, connection: Connection| {
                let address = ClientAddress::find(peer.ip(), request.headers(), &proxies);
                request.extensions_mut().insert(address);
                request.extensions_mut().insert(metering_core::access::ClientAddress(address.ip()));
                request.extensions_mut().insert(connection);
                handler(request)
            };
            // Otherwise the last packet of each response waits until the client acknowledges the one before.
            let _ = stream.set_nodelay(true);
            // From here on, only the worker's runtime watches the socket.
            let socket = match stream.into_std() {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::debug!(%error, %peer, "could not hand a connection to a worker");
                    continue;
                }
            };
            let protocols = Protocols { is_from_proxy: self.proxies.contains(peer.ip()), ..self.protocols.clone() };
            let (connection, watcher) = (permit.connection.clone(), connections.subscribe());
            let shutdown = shutdown.clone();
            let serve: Serve =
                Box::new(move |stream: ClientStream| protocols.serve(stream, connection, handler, watcher, shutdown));
            workers.spawn(run(socket, serve, self.write_timeout, peer, permit));
        }
        drop(self.socket);
        // There is no receiver when there are no connections.
        let _ = connections.send(());
        if tokio::time::timeout(self.grace, connections.closed()).await.is_err() {
            tracing::warn!("some requests did not finish within http.shutdown_grace and were aborted");
        }
    }

    /// Accepts the next connection; `None` when it was refused or accepting failed.
    async fn accept(&self) -> Option<(TcpStream, SocketAddr, ConnectionPermit)> {
        self.connections.socket_free().await;
        match self.socket.accept().await {
            Ok((stream, peer)) => {
                let permit = self.connections.admit(peer.ip(), self.proxies.contains(peer.ip())).await?;
                Some((stream, peer, permit))
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }
}

/// Opens a listening socket whose connections detect clients that are gone or do not read.
async fn listen(address: &str, write_timeout: Duration) -> std::io::Result<TcpListener> {
    let mut failure = None;
    for address in tokio::net::lookup_host(address).await? {
        match listen_at(address, write_timeout) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidInput, "not an address")))
}

fn listen_at(address: SocketAddr, write_timeout: Duration) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On Windows, this option would let other programs take over the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    // Accepted connections inherit these options. Without them, the server still works but detects such clients later.
    let options = SockRef::from(&listener);
    let (time, interval, retries) = KEEPALIVE;
    let keepalive = TcpKeepalive::new().with_time(time).with_interval(interval).with_retries(retries);
    let _ = options.set_tcp_keepalive(&keepalive);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let _ = options.set_tcp_notsent_lowat(UNSENT_MAX_BYTES);
        // A response that fits into the socket's buffer never blocks a write, so it needs this timeout. It is longer
        // than the write timeout, so that a blocked write hits that one first.
        let _ = options.set_tcp_user_timeout(Some(write_timeout.saturating_mul(2)));
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = write_timeout;
    Ok(listener)
}

impl Protocols {
    /// Serves a connection until it ends.
    fn serve<H, F>(
        self,
        stream: ClientStream,
        connection: Connection,
        handler: H,
        watcher: Watcher,
        shutdown: Shutdown,
    ) -> BoxFuture<'static, hyper::Result<()>>
    where
        H: Fn(Request<Incoming>, Connection) -> F + Send + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let (http1, http2, header_timeout) = (self.http1, self.http2, self.header_timeout);
        let Some(tls) = self.tls else {
            if !self.is_from_proxy {
                return serve_http1(&http1, stream, connection, handler, watcher);
            }
            return Box::pin(async move {
                let began = tokio::select! {
                    began = tokio::time::timeout(header_timeout, stream.begins_with(HTTP2_PREFACE)) => began,
                    () = shutdown.cancelled() => return Ok(()),
                };
                match began {
                    Ok(Ok(true)) => {
                        let served = http2.serve(stream, connection, handler, shutdown).await;
                        // The listener waits for all watchers.
                        drop(watcher);
                        served
                    }
                    Ok(Ok(false)) => serve_http1(&http1, stream, connection, handler, watcher).await,
                    // It is broken, or nothing was sent.
                    Ok(Err(_)) | Err(_) => Ok(()),
                }
            });
        };
        Box::pin(async move {
            let accepted = tokio::select! {
                accepted = tls.accept(stream, header_timeout) => accepted,
                () = shutdown.cancelled() => None,
            };
            let Some(stream) = accepted else { return Ok(()) };
            connection.is_encrypted();
            if !tls::is_http2(&stream) {
                return serve_http1(&http1, stream, connection, handler, watcher).await;
            }
            let served = http2.serve(stream, connection, handler, shutdown).await;
            // The listener waits for all watchers.
            drop(watcher);
            served
        })
    }
}

fn serve_http1<S, H, F>(
    http: &http1::Builder,
    stream: S,
    connection: Connection,
    handler: H,
    mut watcher: Watcher,
) -> BoxFuture<'static, hyper::Result<()>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>, Connection) -> F + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let switching = connection.clone();
    let service = service_fn(move |request| {
        let reply = handler(request, connection.clone());
        async move { Ok::<_, Infallible>(reply.await) }
    });
    // Boxed, because a block that captures a future and pins it has room for it twice.
    let mut serving = Box::pin(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    Box::pin(async move {
        let served = tokio::select! {
            biased;
            served = serving.as_mut() => served,
            _ = watcher.changed() => {
                serving.as_mut().graceful_shutdown();
                serving.as_mut().await
            }
        };
        drop(serving);
        // The switched protocol has the socket now, and counts as this connection until it ends.
        switching.until_switched_ends().await;
        drop(watcher);
        served
    })
}

/// Runs a connection on a worker until it ends or is cut.
async fn run(
    socket: std::net::TcpStream,
    serve: Serve,
    write_timeout: Duration,
    peer: SocketAddr,
    permit: ConnectionPermit,
) {
    let socket = match TcpStream::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::debug!(%error, %peer, "a worker could not take over a connection");
            return;
        }
    };
    let stream = ClientStream::new(socket, permit.connection.clone(), write_timeout);
    match permit.connection.run(serve(stream)).await {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, %peer, "a connection ended early"),
        None => tracing::debug!(%peer, "a connection was closed by the server"),
    }
}
