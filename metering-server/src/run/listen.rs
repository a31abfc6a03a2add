//! Listens on an address.

use super::ending::RunError;
use crate::config::Config;
use crate::http::{Listener, Tls, connections_that_fit};

/// Listens on the address that the configuration has under `key`; with TLS if there is a certificate.
pub(crate) async fn bind(key: &str, address: &str, config: &Config, tls: Option<Tls>) -> Result<Listener, RunError> {
    // A request that is forwarded to another service also needs a connection to it.
    let per_connection = if config.upstream.is_some() || config.mcp.gateway.is_some() { 2 } else { 1 };
    let connections = connections_that_fit(config.http.max_connections, per_connection);
    Listener::bind(address, connections, &config.http, tls)
        .await
        .map_err(|cause| RunError::Listen { address: format!("{address} ({key})"), cause })
}
