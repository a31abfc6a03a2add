//! Listens on addresses and serves their connections.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::ending::RunError;
use crate::config::Config;
use crate::http::{Listener, Tls, Workers, connections_that_fit};

/// How many connections each address takes: the configured number, or fewer if the limit of open files requires it,
/// which is logged. Call it once.
pub(crate) fn connections(config: &Config) -> NonZeroUsize {
    // A request that is forwarded to another service also needs a connection to it.
    let forwards = config.upstream.is_some() || !config.gateway.upstreams.is_empty();
    let per_connection = if forwards || config.mcp.gateway.is_some() { 2 } else { 1 };
    connections_that_fit(config.http.max_connections, per_connection)
}

/// Listens on the address that the configuration has under `key`; with TLS if there is a certificate.
pub(crate) async fn bind(
    key: &str,
    address: &str,
    config: &Config,
    connections: NonZeroUsize,
    tls: Option<Tls>,
) -> Result<Listener, RunError> {
    Listener::bind(address, connections, &config.http, tls)
        .await
        .map_err(|cause| RunError::Listen { address: format!("{address} ({key})"), cause })
}

/// Starts the workers that serve the connections of all addresses.
pub(crate) fn workers(config: &Config) -> Result<Arc<Workers>, RunError> {
    Workers::start(config.worker_count()).map_err(|error| RunError::Setup(Box::new(error)))
}
