//! The configuration, as the rest of the server names it.

pub use metering_config::server::*;
