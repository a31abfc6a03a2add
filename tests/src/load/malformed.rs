//! The error for a response that is not valid HTTP.

use std::io;

/// Why a response is not valid HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

impl From<Malformed> for io::Error {
    fn from(Malformed(what): Malformed) -> Self {
        Self::new(io::ErrorKind::InvalidData, format!("malformed response: {what}"))
    }
}
