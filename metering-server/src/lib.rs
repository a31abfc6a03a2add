//! The standalone metering service: the metering API and the metered gateway, on one address by default.
//!
//! `main.rs` reads the configuration and opens the store. Everything else uses [`metering_core::Store`] and does not
//! depend on a backend.

mod access;
mod admin;
mod api;
mod authorize;
mod chains;
pub mod config;
mod endpoints;
mod front;
mod gateway;
mod http;
mod log;
mod mail;
mod mcp;
mod oauth;
mod operations;
mod pages;
mod pay;
mod rates;
mod receipt_file;
mod run;
mod signed_receipts;
mod signups;
mod statements;
mod stripe;
mod webhooks;

pub use api::openapi::document as openapi_document;
pub use chains::{ChainMismatch, Readers};
pub use operations::logging::start as start_logging;
pub use operations::traces::Traces;
pub use run::{Ending, RunError, run, run_mcp_alone};
