//! The configuration keys that locate the store. A database URL may hold a password, so printing or serializing one
//! masks it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ConfigError;
use crate::secret_file;

/// The folder of the default database.
pub const DEFAULT_DATA: &str = "./metering-data";

/// The file name of the default database in that folder.
pub const FILE_IN_DATA: &str = "metering.db";

const MASK: &str = "********";

/// The configuration keys that locate the store; all other keys are ignored.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct StorePlace {
    /// The folder of the default database.
    pub data: Option<PathBuf>,
    /// The database URL; it takes precedence over `data`.
    pub database: Option<DatabaseUrl>,
    /// A file with the database URL, for a URL with a password. It takes precedence over `data`; `database` takes
    /// precedence over it.
    pub database_file: Option<PathBuf>,
}

impl StorePlace {
    /// The database URL, from its key or its file.
    ///
    /// # Errors
    /// When the file cannot be read or is empty.
    pub fn url(self) -> Result<Option<DatabaseUrl>, ConfigError> {
        match (self.database, self.database_file) {
            (Some(url), _) => Ok(Some(url)),
            (None, Some(file)) => read_url(&file).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// The database URL in a file.
pub(crate) fn read_url(file: &Path) -> Result<DatabaseUrl, ConfigError> {
    secret_file::read("database_file", file).map(|url| DatabaseUrl::from(url.to_string()))
}

/// A database URL. Printing or serializing it shows a masked form. The backend knows which parts are safe to show and
/// sets that form with [`Self::shown_as`]; until then, only `sqlite:` paths are shown.
#[derive(Clone)]
pub struct DatabaseUrl {
    url: String,
    shown: String,
}

impl DatabaseUrl {
    /// The URL itself, password included.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.url
    }

    /// The same URL, with `shown` as its printed form.
    #[must_use]
    pub fn shown_as(self, shown: String) -> Self {
        Self { shown, ..self }
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        let shown = if url.starts_with("sqlite:") { url.clone() } else { MASK.to_owned() };
        Self { url, shown }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown)
    }
}

impl<'de> Deserialize<'de> for DatabaseUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}
