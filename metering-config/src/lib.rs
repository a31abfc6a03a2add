//! Reading the configuration: one TOML file, `METERING_...` variables over it, flags over those.
//!
//! A crate of its own because the server and `metering admin` read the same file and must agree on what it says. What
//! the keys mean is the reader's business: [`Sources::read`] takes any type, and ignores nothing that it does not.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]

mod database;
mod error;
mod service_links;
mod sources;

pub use database::{DEFAULT_DATA, DatabaseUrl, FILE_IN_DATA, StorePlace};
pub use error::ConfigError;
pub use sources::Sources;
