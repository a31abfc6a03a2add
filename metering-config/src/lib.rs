//! Reads the configuration: one TOML file, overridden by `METERING_...` variables, overridden by flags.
//!
//! A crate of its own because the server and `metering admin` read the same file and must interpret it the same way.
//! The caller defines the keys: [`Sources::read`] deserializes into any type and leaves the handling of unknown keys to
//! that type.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]

mod database;
mod error;
mod service_links;
mod sources;

pub use database::{DEFAULT_DATA, DatabaseUrl, FILE_IN_DATA, StorePlace};
pub use error::ConfigError;
pub use sources::Sources;
