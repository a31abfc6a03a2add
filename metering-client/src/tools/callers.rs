//! Whose key a call is made with.

use http::request::Parts;
use metering_core::{ClientSource, Credentials};
use rmcp::model::Extensions;

use crate::client::Client;

/// Who calls the tools.
#[derive(Debug, Clone)]
pub enum Callers {
    /// Many, over HTTP: the key of each call is that of its request, whose head the transport has put into the
    /// message's extensions. The client is the one to give keys to.
    PerRequest(Client),
    /// One, who is on the same machine: the client has its key.
    One(Client),
}

impl Callers {
    /// The same callers, who are known as MCP clients in usage records.
    pub(super) fn as_mcp(&self) -> Self {
        match self {
            Self::PerRequest(client) => Self::PerRequest(client.with_source(ClientSource::Mcp)),
            Self::One(client) => Self::One(client.with_source(ClientSource::Mcp)),
        }
    }

    /// The client of a call, with the caller's key if there is one.
    pub(super) fn client(&self, call: &Extensions) -> Client {
        match self {
            Self::One(client) => client.clone(),
            Self::PerRequest(client) => match call.get::<Parts>().and_then(key) {
                Some(key) => client.with_key(key),
                None => client.clone(),
            },
        }
    }

    /// Whether callers may know how the service is reached, and why it is not.
    pub(super) const fn are_local(&self) -> bool {
        matches!(self, Self::One(_))
    }
}

fn key(head: &Parts) -> Option<metering_core::ApiKey> {
    Credentials::read(|name| head.headers.get_all(name).iter().map(|value| value.as_bytes())).key
}
