//! The real server on a database of the benchmark's.

use std::path::Path;

use super::Failure;
use crate::server::{Server, ServerSetup};

/// The setting that turns on `POST /internal/billing/deduct`, and the benchmark's secret.
pub(super) const BILLING_SECRET_SETTING: &str = "METERING_BILLING__INTERNAL_SECRET";
pub(super) const BILLING_SECRET: &str = "only for the benchmark";

/// A server on a data folder, not yet started. Dropping the server ends it, even when the benchmark fails.
pub(super) fn server(program: &Path, data: &Path) -> ServerSetup {
    ServerSetup::of_program(program, data, "127.0.0.1:0")
}

/// Starts a server.
///
/// # Errors
/// If it does not report its address.
pub(super) fn start(setup: ServerSetup) -> Result<Server, Failure> {
    setup.try_start().map_err(|log| format!("a server did not start: {log}").into())
}

/// Stops a server gracefully, so that its last charges are committed and its database is closed.
pub(super) fn end(mut server: Server) -> Result<(), Failure> {
    server.terminate();
    let status = server.wait();
    if status.success() { Ok(()) } else { Err(format!("a server ended with {status}: {}", server.log()).into()) }
}
