//! Which key a tool call uses.

use http::request::Parts;
use metering_core::access::{ClientAddress, Credentials};
use metering_core::{ClientSource, Error};
use rmcp::model::Extensions;

use crate::client::Client;

/// The callers of the tools.
#[derive(Debug, Clone)]
pub enum Callers {
    /// Many callers, over HTTP. Each call uses the key of its own HTTP request, whose head the transport put into the
    /// message's extensions, and its [`ClientAddress`], if the head's own extensions have one. The client here has no
    /// key yet. A call without a key is sent without one: the service decides whether it can be paid for.
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
    ///
    /// # Errors
    /// When the caller sent a malformed key. Ignoring the key could credit a payment to another account.
    pub(super) fn client(&self, call: &Extensions) -> Result<Client, Error> {
        match (self, call.get::<Parts>()) {
            (Self::PerRequest(client), Some(head)) => of(client, head),
            (Self::PerRequest(client) | Self::One(client), _) => Ok(client.clone()),
        }
    }

    /// Whether callers may see the service's address and the causes of its failures.
    pub(super) const fn are_local(&self) -> bool {
        matches!(self, Self::One(_))
    }
}

/// The client with the key of a request, and with the address that its receiver put into the extensions.
fn of(client: &Client, head: &Parts) -> Result<Client, Error> {
    let key = Credentials::read(|name| head.headers.get_all(name).iter().map(|value| value.as_bytes())).key()?;
    let client = key.map_or_else(|| client.clone(), |key| client.with_key(key));
    Ok(match head.extensions.get::<ClientAddress>() {
        Some(address) => client.with_address(*address),
        None => client,
    })
}
