//! Reads the catalogue file, with the files that it names.

use std::io;
use std::path::{Path, PathBuf};

use metering_core::Catalogue;
use metering_core::catalogue::CatalogueError;

/// Why a catalogue file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueFileError {
    /// It cannot be read.
    #[error("cannot read {}: {cause}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It is not valid, or a file that it names cannot be read.
    #[error("{}: {cause}", .file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Everything that is wrong.
        cause: CatalogueError,
    },
}

/// Reads the operator's own catalogue. Files that it names are in its folder, unless their path is absolute.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("routes.json");
/// std::fs::write(&file, r#"{"market": "M", "version": 1, "models": {"file": "models.json"}, "endpoints": [
///     {"path": "/v1/embeddings", "method": "POST", "metered": true, "price": {"preset": "openai-embeddings"}}]}"#)?;
/// assert!(metering_config::read_catalogue(&file).is_err());
///
/// let models = r#"{"models": {"small": {"max": "0.01", "per_million": {"input_tokens": "0.02"}}}}"#;
/// std::fs::write(folder.path().join("models.json"), models)?;
/// assert_eq!(metering_config::read_catalogue(&file)?.routes().len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When it cannot be read, or is not valid.
pub fn read_catalogue(file: &Path) -> Result<Catalogue, CatalogueFileError> {
    let unreadable = |cause| CatalogueFileError::Unreadable { file: file.to_owned(), cause };
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let named = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|cause| cause.to_string());
    let invalid = |cause| CatalogueFileError::Invalid { file: file.to_owned(), cause };
    Catalogue::from_json_with_files(&text, &named).map_err(invalid)
}
