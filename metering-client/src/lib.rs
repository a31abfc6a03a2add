//! Client of a metering service: its HTTP routes, and the MCP tools built on them.
//!
//! A [`Transport`] carries requests to a service. [`HttpTransport`] uses the network; a server that hosts the tools has
//! its own transport, which does not. [`Client`] adds the key and reads responses and errors. [`tools`] turns the
//! catalogue into MCP tools, each of which sends one request with a [`Client`].
#![deny(missing_docs)]

mod client;
mod error;
mod events;
mod http_transport;
mod response;
pub mod tools;
mod transport;

pub use client::Client;
pub use error::{ClientError, Refusal};
pub use events::{Event, Events};
pub use http_transport::{HttpTransport, ServiceUrl, ServiceUrlError};
pub use response::{OpenResponse, Response};
pub use transport::{BodyStream, Transport, Unreachable};
