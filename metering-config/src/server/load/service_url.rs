//! Checks the URL of a service: the upstream's, or our own.

use url::Url;

use crate::ConfigError;

/// An http or https URL without a query and without credentials.
pub(super) fn check(key: &str, text: &str) -> Result<(), ConfigError> {
    let url = Url::parse(text).map_err(|error| ConfigError::key(key, format_args!("{text:?}: {error}")))?;
    let plain = url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !plain {
        return Err(ConfigError::key(key, format_args!("{text:?} must be an http(s) URL without a query or fragment")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The URL is printed in the startup banner, in logs and by --print-config.
        return Err(ConfigError::key(key, "must not contain a user or password"));
    }
    Ok(())
}
