//! The configuration types, under the names that the server uses.

pub use metering_config::server::*;
