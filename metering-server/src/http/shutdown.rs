//! How the parts of a server learn that it stops.

use tokio_util::sync::CancellationToken;

/// Tells all parts of the server to stop.
pub(crate) type Shutdown = CancellationToken;
