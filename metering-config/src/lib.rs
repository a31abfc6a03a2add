//! Reads the configuration: one TOML file, overridden by `METERING_...` variables, overridden by flags.
//!
//! A crate of its own because the server and `metering admin` read the same file and must interpret it the same way.
//! The server's keys are in [`server`]. [`Sources::read`] deserializes into any type and leaves the handling of unknown
//! keys to that type.
//!
//! ```
//! use metering_config::Sources;
//!
//! #[derive(serde::Deserialize)]
//! struct Settings {
//!     listen: String,
//!     agents: Option<u32>,
//! }
//!
//! let environment = [("METERING_LISTEN".into(), "127.0.0.1:8080".into()), ("METERING_AGENTS".into(), "many".into())];
//! let sources = Sources::new(None, environment)?;
//! let error = sources.read::<Settings>().map(|settings| settings.agents).unwrap_err();
//! assert!(error.to_string().contains("METERING_AGENTS"), "{error}");
//!
//! let settings: Settings = sources.flag("agents", Some("3".to_owned())).read()?; // a flag overrides the variable
//! assert_eq!((settings.listen.as_str(), settings.agents), ("127.0.0.1:8080", Some(3)));
//! # Ok::<(), metering_config::ConfigError>(())
//! ```
//!
//! # Where next
//!
//! - Which file, variables and flags are read: [`Sources`].
//! - The server's keys: [`server::Config`], read by [`server::load`].
//! - The catalogue file, with the files that it names: [`read_catalogue`].
//! - Where the store is, and how its password is hidden: [`StorePlace`] and [`DatabaseUrl`].
//!
//! `docs/operating.md` in the repository lists the server's keys.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]

mod catalogue_file;
mod database;
mod error;
mod regular_file;
mod secret_file;
pub mod server;
mod service_links;
mod sources;

pub use catalogue_file::{CatalogueFileError, read_catalogue};
pub use database::{DEFAULT_DATA, DatabaseUrl, FILE_IN_DATA, StorePlace};
pub use error::ConfigError;
pub use sources::Sources;
