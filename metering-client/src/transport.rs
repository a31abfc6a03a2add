//! How requests reach a service: over the network or within one process.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

/// The body of a response as it arrives. Dropping it closes it.
pub type BodyStream = BoxStream<'static, Result<Bytes, Unreachable>>;

/// Carries requests to one service.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request, whose URI is in origin form (`/path?query`), and returns once the response head has arrived.
    /// Any status is a response.
    ///
    /// # Errors
    /// When there is no response.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable>;
}

/// There is no response, or it broke off; a retry may or may not help. The text explains why, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);
