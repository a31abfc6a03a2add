//! The way to a service, over the network or within one process.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;

/// The body of an answer, as it comes. It is closed by dropping it.
pub type BodyStream = BoxStream<'static, Result<Bytes, Unreachable>>;

/// Takes requests to one service.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request, whose URI is in origin form (`/path?query`), and returns once the head of the answer is there.
    /// Any status is an answer.
    ///
    /// # Errors
    /// When there is no answer.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<BodyStream>, Unreachable>;
}

/// There is no answer, or no more of it: for how long, nobody can tell. Says why, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);
