//! Calls a metering service, as its users do: the client of its HTTP routes, and the MCP tools that are made of them.
//!
//! A [`Transport`] takes requests to a service: [`HttpTransport`] over the network; a server that hosts the tools has
//! its own, without one. [`Client`] adds the key and reads answers and errors. [`tools`] turns the catalogue into
//! MCP tools, each of which is a request by a [`Client`].
#![deny(missing_docs)]

mod answer;
mod client;
mod error;
mod events;
mod http_transport;
pub mod tools;
mod transport;

pub use answer::{Answer, OpenAnswer};
pub use client::Client;
pub use error::{ClientError, Refusal};
pub use events::{Event, Events};
pub use http_transport::{HttpTransport, ServiceUrl, ServiceUrlError};
pub use transport::{BodyStream, Transport, Unreachable};
