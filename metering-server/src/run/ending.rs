//! How a server ends, or why it does not start.

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, ready};

use crate::chains::ChainMismatch;
use crate::config::ConfigError;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A chain or plan does not match the configuration.
    #[error(transparent)]
    Chain(#[from] ChainMismatch),
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        cause: std::io::Error,
    },
    /// A component cannot be set up.
    #[error("cannot start: {0}")]
    Setup(Box<dyn std::error::Error + Send + Sync>),
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It got a signal to stop.
    Orderly,
    /// Its store must be reopened; see [`metering_core::StoreError::must_reopen`].
    StoreBroken,
}

/// Begins to wait for `stop`. A signal gets its handler when its future is first polled, and until then it kills the
/// process: call this before the service manager is notified that the server is ready.
pub(crate) fn listen_for(mut stop: LocalBoxFuture<'_, ()>) -> LocalBoxFuture<'_, ()> {
    if stop.as_mut().now_or_never().is_some() { ready(()).boxed_local() } else { stop }
}
