//! The error for a response that is not valid HTTP.

use std::io;

/// Why a response is not valid HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("malformed response: {0}")]
    Head(#[from] httparse::Error),
    #[error("malformed response: a chunk without a valid size")]
    ChunkSize,
    #[error("malformed response: {0}")]
    Framing(&'static str),
}

impl From<httparse::InvalidChunkSize> for Malformed {
    fn from(_: httparse::InvalidChunkSize) -> Self {
        Self::ChunkSize
    }
}

impl From<Malformed> for io::Error {
    fn from(malformed: Malformed) -> Self {
        Self::new(io::ErrorKind::InvalidData, malformed)
    }
}
