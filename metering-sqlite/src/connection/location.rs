//! Database URLs, and the folder that holds the file.

use std::path::{Path, PathBuf};

use metering_core::StoreError;

/// Why a text is not a database URL of this backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It does not start with a scheme and a colon.
    #[error("not a URL such as sqlite:PATH")]
    NotAUrl,
    /// Its scheme is not `sqlite`.
    #[error("unsupported URL scheme")]
    OtherScheme,
    /// It names no file.
    #[error("the URL has no path")]
    NoPath,
    /// It names an in-memory database, which would be lost with the process.
    #[error("an in-memory database would be lost when the program ends")]
    InMemory,
}

/// The file that a URL names: `sqlite:PATH`, or `sqlite://PATH` as other programs write it.
///
/// ```
/// use metering_sqlite::{UrlError, path_of_url};
///
/// assert_eq!(path_of_url("sqlite:data/metering.db"), Ok("data/metering.db".into()));
/// assert_eq!(path_of_url("sqlite:///var/lib/metering.db"), Ok("/var/lib/metering.db".into()));
/// assert_eq!(path_of_url("mysql://localhost/x"), Err(UrlError::OtherScheme));
/// ```
///
/// # Errors
/// When the URL names no file.
pub fn path_of_url(url: &str) -> Result<PathBuf, UrlError> {
    let (scheme, rest) = url.split_once(':').ok_or(UrlError::NotAUrl)?;
    if scheme != "sqlite" {
        return Err(UrlError::OtherScheme);
    }
    match rest.strip_prefix("//").unwrap_or(rest) {
        "" => Err(UrlError::NoPath),
        ":memory:" => Err(UrlError::InMemory),
        path => Ok(PathBuf::from(path)),
    }
}

/// The topmost folder in the path of `file` that does not exist.
pub(crate) fn missing_folder_of(file: &Path) -> Option<&Path> {
    let folders = file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders.take_while(|folder| !folder.exists()).last()
}

/// Creates the folder of `file` with mode 0700 if it does not exist.
pub(crate) fn make_folder_of(file: &Path) -> Result<(), StoreError> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let unavailable = |error| format!("cannot create the directory {}: {error}", folder.display()).into();
    builder.recursive(true).create(folder).map_err(|error| StoreError::Unavailable(unavailable(error)))
}
