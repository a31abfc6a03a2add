//! The routes that a server charges for.

use metering_core::Catalogue;

use crate::api;
use crate::config::{Config, ConfigError};

/// First path segments, besides the API's, that the service uses or reserves for pages and tools. Catalogues cannot use
/// them.
const RESERVED: [&str; 8] = ["assets", "agents-tos", "docs", "mcp", "messages", "metering", "sse", ".well-known"];

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
    let is_reserved = |prefix: &&str| RESERVED.contains(prefix) || api::has_first_segment(prefix);
    if let Some(prefix) = catalogue.prefixes().into_iter().find(is_reserved) {
        return Err(invalid(format!("paths under /{prefix} are reserved for the service")));
    }
    if let Some(prefix) = catalogue.prefixes().into_iter().find(|prefix| prefix.starts_with('{')) {
        return Err(invalid(format!("the first segment of a path must be literal, not {prefix}")));
    }
    Ok(catalogue)
}
