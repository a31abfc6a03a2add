//! The standalone metering service: the metering API and the metered gateway, on one address by default.
//!
//! `main.rs` reads the configuration and opens the store. Everything else uses [`metering_core::Store`] and does not
//! depend on a backend.

mod api;
mod app;
mod bot;
mod chains;
mod clock_watch;
pub mod config;
mod credentials;
mod front;
mod gateway;
mod http;
mod limits;
mod logging;
mod maintenance;
mod mcp;
mod metrics;
mod openapi;
mod pages;
mod progress;
mod readiness;
mod run;
mod sample;

pub use chains::{ChainMismatch, Readers};
pub use logging::start as start_logging;
pub use openapi::document as openapi_document;
pub use run::{Ending, RunError, run, run_mcp_alone};
