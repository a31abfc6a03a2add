//! The embedded backend of [`metering_core`]: one SQLite file, used by a server, by admin commands next to it, or by a
//! service that embeds this crate.
//!
//! It uses a write-ahead log with `synchronous = FULL`, so a confirmed charge survives a power cut. One thread does all
//! writes and commits them in batches; readers never block it. Several processes may use the file at once: each sees
//! the others' commits from its next transaction on.
//!
//! # The first charge
//!
//! ```
//! use std::sync::Arc;
//!
//! use metering_core::{Charge, Service};
//! use metering_sqlite::SqliteStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let store = SqliteStore::open(&folder.path().join("metering.db"))?;
//! let service = Service::with_defaults(Arc::new(store));
//! let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
//! let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/quotes/{number}")).await?;
//! assert_eq!(receipt.balance.to_string(), "1.75"); // and it is on disk
//! service.meter().drain().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Where next
//!
//! - Charging, refunds, reports, and a layer around an HTTP service: [`metering_core::Service`].
//! - A copy while the file is in use: [`SqliteStore::backup_to`].
//! - A path from a configured URL: [`path_of_url`].
//! - Several nodes: `metering-postgres`; `metering admin migrate` moves a file there.
//!
//! The guide is `docs/embedding.md` in the repository; `docs/operating.md` covers backups and failures.
#![deny(missing_docs)]

mod access;
mod charging;
mod connection;
mod error;
mod events;
mod journal;
mod migrations;
mod money;
mod rows;
mod script;
mod store;
mod transfer;
mod usage;

pub use connection::location::{UrlError, path_of_url};
pub use store::SqliteStore;
pub use transfer::moved::Moved;

/// Runs the program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
