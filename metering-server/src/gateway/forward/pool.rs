//! The connections to the upstream that wait for their next request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use http::Uri;
use hyper_rustls::ConfigBuilderExt;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

use super::connection::{Connector, UpstreamConnection};
use super::upstream_error::UpstreamError;

/// Idle connections are closed after this time. Many servers close them sooner; `HttpUpstream::exchange` handles that.
pub(super) const MAX_IDLE: Duration = Duration::from_secs(60);

/// After this time without traffic, and as often again, the kernel checks that the upstream is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

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
    pub(super) fn new(upstream: Uri, connect_timeout: Duration, max_idle: usize) -> io::Result<Self> {
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
        let connector = Connector::from((tcp, tls()?));
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

    /// Closes expired connections, and those that the upstream has closed.
    pub(super) fn expire(&self) {
        let mut expired = Vec::new();
        let mut idle = self.idle();
        for (mut connection, since) in std::mem::take(&mut *idle) {
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

    #[cfg(test)]
    pub(super) fn idle_connections(&self) -> usize {
        self.idle().len()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, VecDeque<(UpstreamConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// TLS that trusts what the system trusts.
fn tls() -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let verified = builder.and_then(ConfigBuilderExt::try_with_platform_verifier).map_err(io::Error::other)?;
    let mut config = verified.with_no_client_auth();
    // Some servers choose by this (ALPN, RFC 7301).
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("upstream", &self.upstream)
            .field("idle", &self.idle().len())
            .finish_non_exhaustive()
    }
}
