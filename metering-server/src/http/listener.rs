//! The accept loop: connections with a cap on their number, time-outs for slow and idle ones, an orderly end.
//!
//! Ours rather than `warp::serve`, which has neither time-outs nor a cap.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::{HttpConfig, TrustedProxies};
use crate::http::{ClientAddress, Response};

/// How long to wait after a failed accept: most likely the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Tells everything in the server to come to an end.
pub(crate) type Shutdown = CancellationToken;

/// A bound address and the rules for its connections.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    http: http1::Builder,
    turns: Arc<Semaphore>,
    proxies: Arc<TrustedProxies>,
    grace: Duration,
}

impl Listener {
    /// Binds `address`, a host and a port.
    ///
    /// # Errors
    /// When the address cannot be bound, for example because another process has it.
    pub(crate) async fn bind(address: &str, config: &HttpConfig) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(config.header_timeout.duration())
            .max_buf_size(config.max_header_bytes);
        let turns = Arc::new(Semaphore::new(config.max_connections.get().min(Semaphore::MAX_PERMITS)));
        let proxies = Arc::new(config.trusted_proxies.clone());
        Ok(Self { socket, http, turns, proxies, grace: config.shutdown_grace.duration() })
    }

    /// The address that is bound.
    ///
    /// # Errors
    /// When the operating system cannot say.
    pub(crate) fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `shutdown`, each request with its [`ClientAddress`] as an extension; then lets requests that were begun finish, for at most the configured grace.
    pub(crate) async fn serve<H, F>(self, handler: H, shutdown: Shutdown)
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let connections = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = shutdown.cancelled() => break,
            };
            let Some((stream, peer, turn)) = accepted else { continue };
            let (proxies, handler) = (Arc::clone(&self.proxies), handler.clone());
            let handler = move |mut request: Request<Incoming>| {
                let address = ClientAddress::find(peer.ip(), request.headers(), &proxies);
                request.extensions_mut().insert(address);
                handler(request)
            };
            let connection = connection(self.http.clone(), stream, peer, handler, connections.watcher());
            tokio::spawn(async move {
                connection.await;
                drop(turn);
            });
        }
        drop(self.socket);
        if tokio::time::timeout(self.grace, connections.shutdown()).await.is_err() {
            tracing::warn!("some requests did not finish within the shutdown's grace and were cut off");
        }
    }

    async fn accept(&self) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
        // The turn first: what cannot be served yet waits in the operating system's queue.
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        match self.socket.accept().await {
            Ok((stream, peer)) => Some((stream, peer, turn)),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                None
            }
        }
    }
}

fn connection<H, F>(
    http: http1::Builder,
    stream: TcpStream,
    peer: SocketAddr,
    handler: H,
    watcher: Watcher,
) -> impl Future<Output = ()>
where
    H: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    // Without it, the last packet of each reply waits for the client's acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let reply = handler(request);
        async move { Ok::<_, Infallible>(reply.await) }
    });
    let connection = watcher.watch(http.serve_connection(TokioIo::new(stream), service));
    async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, %peer, "a connection ended early");
        }
    }
}
