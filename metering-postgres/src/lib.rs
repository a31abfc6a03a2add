//! The backend of [`metering_core`] for several nodes: one PostgreSQL database, or an engine that speaks its protocol.
//! Balances and rate limits are exact across all nodes.
//!
//! # The first charge
//!
//! Not run here, because it needs a PostgreSQL server:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use metering_core::{Charge, Service};
//! use metering_postgres::{PostgresConfig, PostgresStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config: PostgresConfig = "postgres://metering@localhost/metering".parse()?;
//! let service = Service::with_defaults(Arc::new(PostgresStore::connect(&config).await?));
//! let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
//! let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/quotes/{number}")).await?;
//! assert_eq!(receipt.balance.to_string(), "1.75"); // and it is committed
//! service.meter().drain().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Where next
//!
//! - Several hosts, TLS, the pool's size, PgBouncer: [`PostgresConfig`].
//! - Charging, refunds, reports, and a layer around an HTTP service: [`metering_core::Service`].
//! - Moving an SQLite file here: `metering admin migrate`, which uses [`PostgresStore::connect_to_import`].
//!
//! `docs/deployment.md` in the repository lists the requirements for the database; the guide is `docs/embedding.md`.
//!
//! # How it works
//!
//! A batch of charges is one transaction in two round trips, no matter how large it is: the first locks the accounts'
//! rows, in order, and reads what the charge rule needs; the second writes the decisions and commits. A node that was
//! the last to charge all these accounts needs only the second, which then checks that the rows are unchanged. All
//! other writes are serialized (see `serialized`), so each sees the effects of all earlier ones. If a `COMMIT` gets no
//! response, its outcome is looked up, not guessed (see `outcome`).
#![deny(missing_docs)]

mod access;
mod charging;
mod connection;
mod error;
mod events;
mod migrations;
mod money;
mod operators;
mod rows;
#[cfg(test)]
mod schema;
mod script;
mod statements;
mod store;
mod transactions;
mod transfer;
mod usage;

pub use connection::connect::{PostgresConfig, PostgresUrlError};
pub use store::PostgresStore;
pub use transfer::import::TargetInspection;

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
