//! Logging, to standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{ConfigError, LogConfig, LogFormat};

/// Filters that hold unless the configured one says otherwise. The MCP library logs every message as information, with
/// all that its client wrote.
const QUIET: &str = "rmcp=error";

/// Starts logging for the whole process. A second call changes nothing.
///
/// # Errors
/// When the filter cannot be read.
pub fn start(config: &LogConfig) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(format!("{QUIET},{}", config.filter))
        .map_err(|error| ConfigError::Key { key: "log.filter".to_owned(), problem: error.to_string() })?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let started = match config.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    // An error means that the embedding process logs already, its own way.
    drop(started);
    Ok(())
}
