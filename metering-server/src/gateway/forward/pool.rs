//! The connections to the upstream that wait for their next request.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

use super::UpstreamError;
use super::connection::{Connector, UpstreamConnection};

/// Idle connections are closed after this time. Many servers close them sooner; `HttpUpstream::exchange` handles that.
pub(super) const MAX_IDLE: Duration = Duration::from_secs(60);

/// Opens connections to one upstream, and keeps those that are idle.
pub(super) struct Pool {
    connector: Connector,
    upstream: Uri,
    connect_timeout: Duration,
    max_idle: usize,
    /// The most recently used is at the back, and is reused first, so under light load the others expire.
    idle: Mutex<VecDeque<(UpstreamConnection, Instant)>>,
}

impl Pool {
    /// # Errors
    /// When the system's certificates cannot be read.
    pub(super) fn new(upstream: Uri, connect_timeout: Duration, max_idle: usize) -> std::io::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = hyper_rustls::HttpsConnectorBuilder::new().with_provider_and_platform_verifier(provider)?;
        let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
        Ok(Self { connector, upstream, connect_timeout, max_idle, idle: Mutex::default() })
    }

    /// An idle connection that the upstream has not closed, as far as is known.
    pub(super) fn take(&self) -> Option<UpstreamConnection> {
        loop {
            let (mut connection, since) = self.idle().pop_back()?;
            if since.elapsed() < MAX_IDLE && connection.is_idle() {
                return Some(connection);
            }
        }
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<UpstreamConnection, UpstreamError> {
        let opened = async {
            let stream = self.connector.clone().oneshot(self.upstream.clone()).await;
            let stream = stream.map_err(UpstreamError::Connect)?;
            Ok(UpstreamConnection::handshake(stream).await?)
        };
        timeout(self.connect_timeout, opened).await.unwrap_or(Err(UpstreamError::TimedOut))
    }

    /// Keeps a connection that is idle.
    pub(super) fn put(&self, connection: UpstreamConnection) {
        let mut idle = self.idle();
        idle.push_back((connection, Instant::now()));
        if idle.len() > self.max_idle {
            let oldest = idle.pop_front();
            drop(idle);
            drop(oldest);
        }
    }

    /// Closes expired connections.
    pub(super) fn expire(&self) {
        let expired: Vec<_> = {
            let mut idle = self.idle();
            let expired = idle.iter().take_while(|(_, since)| since.elapsed() >= MAX_IDLE).count();
            idle.drain(..expired).collect()
        };
        drop(expired);
    }

    #[cfg(test)]
    pub(super) fn idle_connections(&self) -> usize {
        self.idle().len()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, VecDeque<(UpstreamConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("upstream", &self.upstream)
            .field("idle", &self.idle().len())
            .finish_non_exhaustive()
    }
}
