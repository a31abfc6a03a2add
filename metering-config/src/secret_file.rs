//! Reads a secret from a separate file.

use std::path::Path;

use zeroize::Zeroizing;

use crate::ConfigError;

/// The contents of a file, without surrounding white space.
pub(crate) fn read(key: &str, file: &Path) -> Result<Zeroizing<String>, ConfigError> {
    let unreadable = |error| ConfigError::key(key, format_args!("{}: {error}", file.display()));
    let text = Zeroizing::new(std::fs::read_to_string(file).map_err(unreadable)?);
    match text.trim() {
        "" => Err(ConfigError::key(key, format_args!("{} is empty", file.display()))),
        secret => Ok(Zeroizing::new(secret.to_owned())),
    }
}
