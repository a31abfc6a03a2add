//! TLS for client connections: HTTP/2 and HTTP/1.1 by ALPN.
//!
//! A handshake has a timeout, and its connection counts towards the limits from its first packet. A client that never
//! finishes one is in the state of a client that has sent no request: it may be closed to make room.

mod certificates;

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::{ConfigError, TlsConfig};
use crate::http::client_stream::ClientStream;
use crate::operations::metric::counter;

pub(crate) use certificates::Certificates;

/// How long a handshake may take: two round trips on the slowest networks, and a full certificate chain.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The first byte of a TLS handshake (RFC 8446, section 5.1).
const HANDSHAKE_RECORD: u8 = 22;
/// How long a client that sent plain HTTP may take to read the response and to close.
const PLAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How much more of its request is read. If unread data were left, the operating system would reset the connection, and
/// the client might not see the response.
const PLAIN_MAX_BYTES: u64 = 64 * 1024;
const PLAIN_RESPONSE: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 59\r\nConnection: close\r\n\r\nThis address serves HTTPS only: use a URL with https://...\n";

/// A listener's TLS configuration. Clones share the certificate.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    acceptor: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
}

impl Tls {
    /// Reads the configured certificate.
    ///
    /// # Errors
    /// When the files cannot be read, or do not belong together.
    pub(crate) fn new(config: &TlsConfig) -> Result<Self, ConfigError> {
        let certificates = Arc::new(Certificates::new(config)?);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let acceptor = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConfigError::key("tls", error))?;
        let mut acceptor = acceptor.with_no_client_auth().with_cert_resolver(Arc::clone(&certificates) as _);
        acceptor.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: Arc::new(acceptor), certificates })
    }

    /// The certificate in use.
    pub(crate) fn certificates(&self) -> &Arc<Certificates> {
        &self.certificates
    }

    /// Completes the handshake with a client; `None` when it fails, or takes longer than `timeout` or ten seconds.
    pub(super) async fn accept(&self, stream: ClientStream, timeout: Duration) -> Option<TlsStream<ClientStream>> {
        let reason = match tokio::time::timeout(timeout.min(HANDSHAKE_TIMEOUT), self.handshake(stream)).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(reason)) => reason,
            Err(_) => "timeout",
        };
        counter!("metering_tls_handshakes_failed_total", "TLS handshakes that failed, by reason", "reason" => reason)
            .increment(1);
        None
    }

    async fn handshake(&self, stream: ClientStream) -> Result<TlsStream<ClientStream>, &'static str> {
        match stream.peek_byte().await {
            Ok(Some(HANDSHAKE_RECORD)) => {}
            // An HTTP method.
            Ok(Some(byte)) if byte.is_ascii_uppercase() => {
                let _ = tokio::time::timeout(PLAIN_TIMEOUT, refuse_plain(stream)).await;
                return Err("plain_http");
            }
            Ok(Some(_)) => return Err("not_tls"),
            Ok(None) | Err(_) => return Err("disconnected"),
        }
        TlsAcceptor::from(Arc::clone(&self.acceptor)).accept(stream).await.map_err(|error| {
            tracing::debug!(%error, "a TLS handshake failed");
            if error.kind() == std::io::ErrorKind::InvalidData { "refused" } else { "disconnected" }
        })
    }
}

/// Whether the client chose HTTP/2.
pub(super) fn is_http2(stream: &TlsStream<ClientStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(b"h2")
}

/// Tells a client that sends HTTP without TLS what to do.
async fn refuse_plain(mut stream: ClientStream) -> std::io::Result<()> {
    stream.write_all(PLAIN_RESPONSE).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(PLAIN_MAX_BYTES), &mut tokio::io::sink()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_to_plain_http_states_its_length() {
        let text = std::str::from_utf8(PLAIN_RESPONSE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{}", body.len());
    }
}
