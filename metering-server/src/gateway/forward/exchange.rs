//! Sends a request on a connection that is open, or on a new one, and sends it again where that is safe.

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use hyper::body::Incoming;

use super::HttpUpstream;
use super::body::Link;
use super::http2::{SharedConnection, Unanswered};
use super::pool::Opened;
use super::upstream_error::UpstreamError;
use crate::gateway::websocket::Handshake;

/// The head of a response, and the connection that its body arrives on.
type Exchanged = (Response<Incoming>, Link);

impl HttpUpstream {
    /// Sends the request, and receives the head of the response.
    pub(super) async fn exchange(&self, head: &Parts, body: Bytes) -> Result<Exchanged, UpstreamError> {
        // HTTP/2 connections cannot switch to another protocol.
        let is_handshake = head.extensions.get::<Handshake>().is_some();
        if !is_handshake && let Some(shared) = self.pool.shared() {
            // Boxed, so that requests over HTTP/1.1 do not have its size.
            match Box::pin(self.share(shared, head, body.clone())).await? {
                Ok(exchanged) => return Ok(exchanged),
                Err(refused) if refused.is_unprocessed => {}
                Err(refused) if is_closed(&refused.error) && head.method.is_idempotent() => {}
                Err(refused) => return Err(refused.error.into()),
            }
        }
        if let Some(mut connection) = self.pool.take() {
            match connection.send(self.request(head, body.clone())?).await {
                Ok(response) => return Ok((response, Link::Http1(connection))),
                // The upstream closed the connection before a complete response head. Retry if the request was never
                // written, or if its method is idempotent (RFC 9110, section 9.2.2).
                Err(refused) if refused.message().is_some() => {}
                Err(refused) if is_closed(refused.error()) && head.method.is_idempotent() => {}
                Err(refused) => return Err(refused.into_error().into()),
            }
        }
        // Boxed, since it is rare and its future is large.
        let opened = match is_handshake {
            true => Box::pin(self.pool.connect()).await.map(Opened::Http1)?,
            false => Box::pin(self.pool.open()).await?,
        };
        let mut connection = match opened {
            Opened::Http1(connection) => connection,
            Opened::Http2(shared) => {
                return match Box::pin(self.share(shared, head, body)).await? {
                    Ok(exchanged) => Ok(exchanged),
                    Err(refused) if refused.is_unprocessed => Err(UpstreamError::Connect(refused.error.into())),
                    Err(refused) => Err(refused.error.into()),
                };
            }
        };
        match connection.send(self.request(head, body)?).await {
            Ok(response) => Ok((response, Link::Http1(connection))),
            // It was closed before the request was written.
            Err(refused) if refused.message().is_some() => Err(UpstreamError::Connect(refused.into_error().into())),
            Err(refused) => Err(refused.into_error().into()),
        }
    }

    /// The same on an HTTP/2 connection.
    async fn share(
        &self,
        shared: SharedConnection,
        head: &Parts,
        body: Bytes,
    ) -> Result<Result<Exchanged, Unanswered>, UpstreamError> {
        let sent = shared.send(self.request(head, body)?, self.pool.upstream()).await;
        Ok(sent.map(|(response, stream)| (response, Link::Http2(stream))))
    }
}

/// Whether the connection was closed or reset before a complete response head arrived, as opposed to an invalid head.
fn is_closed(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    error.is_incomplete_message() || error.is_canceled() || error.is_closed() || source.is_some()
}
