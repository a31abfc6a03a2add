//! Reads a catalogue from its JSON text.

use std::sync::Arc;

use super::Catalogue;
use super::file::CatalogueFile;
use super::object::UnknownKeys;
use super::preset::ModelFiles;
use super::problem::CatalogueError;
use super::stream_prefix::StreamPrefix;

impl Catalogue {
    /// Reads the operator's own catalogue. Unknown keys are errors: a misspelt `credit_weight` would otherwise be a
    /// weight of 1. Keys that start with `x-` or `$` are free to use.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let misspelt = r#"{"market": "M", "version": 1, "endpoints": [
    ///     {"path": "/report", "method": "GET", "metered": true, "credit_wieght": 72}]}"#;
    /// let error = Catalogue::from_json(misspelt).unwrap_err().to_string();
    /// assert!(error.contains("unknown key credit_wieght; did you mean credit_weight?"), "{error}");
    /// ```
    ///
    /// # Errors
    /// When the text is not JSON in the format of `endpoints.json`, or a route breaks a rule: everything that is wrong,
    /// each with its route and key.
    pub fn from_json(text: &str) -> Result<Self, CatalogueError> {
        Self::read(text, UnknownKeys::Refuse, &no_files)
    }

    /// The same as [`Catalogue::from_json`] for a catalogue that may name files with models, which `files` reads.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let catalogue = r#"{"market": "M", "version": 1, "models": {"file": "models.json"}, "endpoints": [
    ///     {"path": "/v1/embeddings", "method": "POST", "metered": true, "price": {"preset": "openai-embeddings"}}]}"#;
    /// let models = r#"{"models": {"small": {"max": "0.01", "per_million": {"input_tokens": "0.02"}}}}"#;
    /// let read = Catalogue::from_json_with_files(catalogue, &|_name| Ok(models.to_owned()))?;
    /// let price = read.routes()[0].usage_price().ok_or("no price by usage")?;
    /// assert_eq!(price.models().map(|(name, _)| name).collect::<Vec<_>>(), ["small"]);
    /// assert_eq!(Catalogue::from_json(read.json())?.routes(), read.routes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`Catalogue::from_json`], and when a file cannot be read.
    pub fn from_json_with_files(text: &str, files: &ModelFiles<'_>) -> Result<Self, CatalogueError> {
        Self::read(text, UnknownKeys::Refuse, files)
    }

    /// Reads a catalogue published by another server. Unknown keys are ignored, because that server may be newer.
    ///
    /// ```
    /// use metering_core::Catalogue;
    ///
    /// let newer = r#"{"market": "M", "version": 9, "regions": ["eu"], "endpoints": []}"#;
    /// assert_eq!(Catalogue::from_published_json(newer)?.version(), 9);
    /// assert!(Catalogue::from_json(newer).is_err());
    /// # Ok::<(), metering_core::catalogue::CatalogueError>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`Catalogue::from_json`], except that unknown keys are accepted.
    pub fn from_published_json(text: &str) -> Result<Self, CatalogueError> {
        Self::read(text, UnknownKeys::Ignore, &no_files)
    }

    fn read(text: &str, unknown: UnknownKeys, files: &ModelFiles<'_>) -> Result<Self, CatalogueError> {
        let CatalogueFile { market, version, routes, trie, written } = CatalogueFile::read(text, unknown, files)?;
        let stream_prefixes = StreamPrefix::of(&routes).into();
        let json = written.map_or_else(|| text.into(), Arc::from);
        Ok(Self { market, version, routes: routes.into(), trie: Arc::new(trie), stream_prefixes, json })
    }
}

/// For a catalogue that is not on a disk.
fn no_files(_name: &str) -> Result<String, String> {
    Err("this catalogue is not read from a file, so write its models out".to_owned())
}
