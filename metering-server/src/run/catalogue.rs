//! The routes that a server charges for.

use metering_core::Catalogue;

use crate::config::{Config, ConfigError};

/// First path segments that belong to the service, used or reserved for its pages and tools. Catalogues cannot use
/// them.
const RESERVED: [&str; 18] = [
    "api-key",
    "assets",
    "agents-tos",
    "credits",
    "docs",
    "endpoints.json",
    "health",
    "internal",
    "mcp",
    "messages",
    "metering",
    "metrics",
    "openapi.json",
    "ready",
    "signup",
    "sse",
    "verify",
    ".well-known",
];

/// The configured catalogue, or the default one.
///
/// # Errors
/// When the file cannot be read, or a path in it belongs to the service.
pub(crate) fn catalogue(config: &Config) -> Result<Catalogue, ConfigError> {
    let invalid = |problem: String| ConfigError::Key { key: "catalogue".to_owned(), problem };
    let catalogue = match &config.catalogue {
        None => Catalogue::from_json(metering_sample::ROUTES).map_err(|error| invalid(error.to_string()))?,
        Some(file) => {
            let unusable = |error: &dyn std::fmt::Display| invalid(format!("{}: {error}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|error| unusable(&error))?;
            Catalogue::from_json(&text).map_err(|error| unusable(&error))?
        }
    };
    if let Some(prefix) = catalogue.prefixes().into_iter().find(|prefix| RESERVED.contains(prefix)) {
        return Err(invalid(format!("paths under /{prefix} are reserved for the service")));
    }
    if let Some(prefix) = catalogue.prefixes().into_iter().find(|prefix| prefix.starts_with('{')) {
        return Err(invalid(format!("the first segment of a path must be literal, not {prefix}")));
    }
    Ok(catalogue)
}
