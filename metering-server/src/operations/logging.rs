//! Logs to standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::{ConfigError, LogConfig, LogFormat};

/// Default filters, which the configured filter can override. The MCP library logs every message at info level, with
/// everything its client sent.
const DEFAULT_FILTERS: &str = "rmcp=error";

/// Starts logging for the whole process. A second call changes nothing.
///
/// # Errors
/// When the filter is invalid.
pub fn start(config: &LogConfig) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(format!("{DEFAULT_FILTERS},{}", config.filter))
        .map_err(|error| ConfigError::Key { key: "log.filter".to_owned(), problem: error.to_string() })?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let started = match config.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    // An error means that the embedding process has already set up logging of its own.
    drop(started);
    Ok(())
}
