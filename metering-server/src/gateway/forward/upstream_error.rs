use http::uri::InvalidUri;

/// Why the upstream did not respond.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamError {
    #[error("it took too long")]
    TimedOut,
    #[error("it took too long to connect")]
    ConnectTimedOut,
    #[error("could not connect")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("the path is too long with the upstream's base path in front")]
    TooLong(#[from] InvalidUri),
}

/// How far a request got that an upstream did not serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// The upstream has not got it.
    Nowhere,
    /// The upstream may have got it. No part of a response was forwarded.
    Upstream,
    /// No upstream can serve it: it cannot be sent, or its connection has switched to another protocol.
    End,
}

impl UpstreamError {
    pub(super) const fn reached(&self) -> Reached {
        match self {
            Self::ConnectTimedOut | Self::Connect(_) => Reached::Nowhere,
            Self::TimedOut | Self::Http(_) => Reached::Upstream,
            Self::TooLong(_) => Reached::End,
        }
    }
}
