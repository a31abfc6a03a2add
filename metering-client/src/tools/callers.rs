//! Which key a tool call uses.

use http::request::Parts;
use metering_core::ClientSource;
use metering_core::access::Credentials;
use rmcp::model::Extensions;

use crate::client::Client;

/// Who calls the tools.
#[derive(Debug, Clone)]
pub enum Callers {
    /// Many callers, over HTTP. Each call uses the key of its own HTTP request, whose head the transport put into the
    /// message's extensions. The client here has no key yet.
    PerRequest(Client),
    /// One caller, on this machine. The client has that caller's key.
    One(Client),
}

impl Callers {
    /// The same callers, recorded as MCP clients in usage records.
    pub(super) fn as_mcp(&self) -> Self {
        match self {
            Self::PerRequest(client) => Self::PerRequest(client.with_source(ClientSource::Mcp)),
            Self::One(client) => Self::One(client.with_source(ClientSource::Mcp)),
        }
    }

    /// The client for one call, with the caller's key if there is one.
    pub(super) fn client(&self, call: &Extensions) -> Client {
        match self {
            Self::One(client) => client.clone(),
            Self::PerRequest(client) => match call.get::<Parts>().and_then(key) {
                Some(key) => client.with_key(key),
                None => client.clone(),
            },
        }
    }

    /// Whether callers may see the service's address and the causes of its failures.
    pub(super) const fn are_local(&self) -> bool {
        matches!(self, Self::One(_))
    }
}

fn key(head: &Parts) -> Option<metering_core::ApiKey> {
    Credentials::read(|name| head.headers.get_all(name).iter().map(|value| value.as_bytes())).key
}
