use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;

/// A response of the sample feed.
pub enum SampleResponse {
    /// A JSON document.
    Json {
        /// The HTTP status.
        status: u16,
        /// The document.
        body: Bytes,
    },
    /// Server-sent events, without end.
    Events(BoxStream<'static, Bytes>),
}

impl fmt::Debug for SampleResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { status, body } => f.debug_struct("Json").field("status", status).field("body", body).finish(),
            Self::Events(_) => f.write_str("Events(..)"),
        }
    }
}
