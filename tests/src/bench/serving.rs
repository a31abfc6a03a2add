//! The real server on a database of the benchmark's.

use std::path::Path;

use super::Failure;
use crate::program;
use crate::server::{Server, ServerSetup};

/// A server on a data folder, not yet started. Dropping the server ends it, even when the benchmark fails.
///
/// # Errors
/// If the server was not built; the message says how to build it.
pub(super) fn server(data: &Path) -> Result<ServerSetup, Failure> {
    program::find("metering-server")?;
    Ok(ServerSetup::new(data, "127.0.0.1:0"))
}

/// Stops a server gracefully, so that its last charges are committed and its database is closed.
pub(super) fn end(mut server: Server) -> Result<(), Failure> {
    server.terminate();
    let status = server.wait();
    if status.success() { Ok(()) } else { Err(format!("a server ended with {status}: {}", server.log()).into()) }
}
