//! Client of a metering service: its HTTP routes, and the MCP tools built on them.
//!
//! A [`Transport`] carries requests to a service. [`HttpTransport`] uses the network; a server that hosts the tools has
//! its own transport, which does not. [`Client`] adds the key and reads responses and errors. [`tools`] turns the
//! catalogue into MCP tools, each of which sends one request with a [`Client`].
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use metering_client::{Client, HttpTransport};
//! use metering_core::{ClientSource, Credits};
//!
//! #[derive(serde::Deserialize)]
//! struct Balance {
//!     credit_balance: Credits,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let key = metering_core::ApiKey::generate(&metering_core::SystemRandomness);
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", listener.local_addr()?);
//! # let balance = axum::routing::get(|| async { r#"{"credit_balance":1.75}"# });
//! # let server = axum::Router::new().route("/credits/balance", balance);
//! # tokio::spawn(async { axum::serve(listener, server).await });
//! let transport = HttpTransport::new(url.parse()?, Duration::from_secs(10))?;
//! let client = Client::new(Arc::new(transport), ClientSource::Direct).with_key(key);
//! let balance: Balance = client.get("/credits/balance").await?.json()?;
//! assert_eq!(balance.credit_balance.to_string(), "1.75");
//! # Ok(())
//! # }
//! ```
//!
//! # Where next
//!
//! - A retry that is charged once: [`Client::with_idempotency_key`]. A stream: [`Client::events`].
//! - Calls of the API: [`Client::call`]. Keys for others, with limits: [`calls::keys::CreateKey`]. The cost of a held
//!   request: [`calls::account::GetRequest`]. Events of the account, sent to a server:
//!   [`calls::webhooks::CreateWebhook`].
//! - The errors of a service, and their causes: [`ClientError`] and [`Refusal`].
//!
//! `docs/protocol.md` in the repository describes the requests.
#![deny(missing_docs)]

pub mod calls;
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
