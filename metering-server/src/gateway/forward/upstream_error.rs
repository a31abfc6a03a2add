use http::uri::InvalidUri;

/// Why the upstream did not respond.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamError {
    #[error("it took too long")]
    TimedOut,
    #[error("could not connect")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("the path is too long with the upstream's base path in front")]
    TooLong(#[from] InvalidUri),
}
