//! Where a database is: the form of its URL, and the folder that holds it.

use std::path::{Path, PathBuf};

use metering_core::StoreError;

/// Why a text is not the URL of a database of this backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It does not start with a scheme and a colon.
    #[error("it is not a URL such as sqlite:PATH")]
    NotAUrl,
    /// Its scheme is another backend's, or nobody's.
    #[error("its scheme is not sqlite")]
    OtherScheme,
    /// It names no file.
    #[error("it has no path")]
    NoPath,
    /// It asks for a database in memory, which would be gone with the process.
    #[error("a database in memory would be gone when the program ends")]
    InMemory,
}

/// The file that a URL names: `sqlite:PATH`, or `sqlite://PATH` as others write it.
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
/// When it names none.
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

/// The first folder on the way to `file` that does not exist.
pub(crate) fn missing_folder_of(file: &Path) -> Option<&Path> {
    let folders = file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    folders.take_while(|folder| !folder.exists()).last()
}

/// Makes the folder that is to hold `file`, for its owner alone, where there is none.
pub(crate) fn make_folder_of(file: &Path) -> Result<(), StoreError> {
    let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let unavailable = |error| format!("cannot make the directory {}: {error}", folder.display()).into();
    builder.recursive(true).create(folder).map_err(|error| StoreError::Unavailable(unavailable(error)))
}
