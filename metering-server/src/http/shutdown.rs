//! Notifies the parts of a server that it is stopping.

use tokio_util::sync::CancellationToken;

/// Tells all parts of the server to stop.
pub(crate) type Shutdown = CancellationToken;
