//! Starts logs, which go to standard error, and traces, which go to a collector.
//!
//! Both come from `tracing`. The spans of traces have a separate target, which the log leaves out.

use std::io::IsTerminal;

use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt};

use super::traces::Traces;
use crate::config::{Config, ConfigError, LogConfig, LogFormat};

/// Default filters, which the configured filter can override. The spans of traces would make every line longer, and the
/// OpenTelemetry libraries repeat what `traces` logs once.
const DEFAULT_FILTERS: &str = "metering::trace=off,opentelemetry_sdk=off,opentelemetry-otlp=off";

/// The filters of the MCP library, unless the configured filter names it: the filter for a part of it would be stronger
/// than one for all of it. It logs every message at info level, with everything its client sent. The errors of its
/// services are about clients that hang up, which is ordinary.
const MCP_FILTERS: &str = "rmcp=error,rmcp::service=off";

/// Starts logging for the whole process, and traces if they are configured. Must be called on a Tokio runtime. A second
/// call changes nothing.
///
/// # Errors
/// When the filter is invalid, or spans cannot be sent as configured.
pub fn start(config: &Config) -> Result<Traces, ConfigError> {
    let traces = Traces::new(config.otlp.as_ref())?;
    // An error means that the embedding process has already set up logging. Without any layer for traces, a disabled
    // span costs one check. Even an empty layer would make every span check all filters.
    drop(match traces.layer() {
        Some(layer) => Registry::default().with(layer).with(lines(&config.log)?).try_init(),
        None => Registry::default().with(lines(&config.log)?).try_init(),
    });
    Ok(traces)
}

/// The lines of the log.
fn lines<S>(config: &LogConfig) -> Result<impl Layer<S> + use<S>, ConfigError>
where
    S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
{
    let filter = EnvFilter::try_new(filters(&config.filter))
        .map_err(|error| ConfigError::Key { key: "log.filter".to_owned(), problem: error.to_string() })?;
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    Ok(match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    }
    .with_filter(filter))
}

/// The configured filter, after the defaults that it may override.
fn filters(configured: &str) -> String {
    let of_mcp = if configured.contains("rmcp") { "" } else { MCP_FILTERS };
    let parts = [of_mcp, DEFAULT_FILTERS, configured].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mcp_library_is_quiet_unless_it_is_named() {
        assert!(filters("info").starts_with("rmcp=error,rmcp::service=off,") && filters("info").ends_with(",info"));
        let named = filters("info,rmcp=debug");
        assert!(!named.contains("rmcp::service"), "{named}");
        for configured in ["info", "trace,rmcp=trace"] {
            assert!(EnvFilter::try_new(filters(configured)).is_ok());
        }
    }
}
