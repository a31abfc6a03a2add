//! Where the store is, and the database's URL, which may hold a password.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The folder of the default database.
pub const DEFAULT_DATA: &str = "./metering-data";

/// The default database's file in that folder.
pub const FILE_IN_DATA: &str = "metering.db";

const MASK: &str = "********";

/// The keys that say where the store is; all others are ignored.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct StorePlace {
    /// The folder of the default database.
    pub data: Option<PathBuf>,
    /// Which database, as a URL; it wins over `data`.
    pub database: Option<DatabaseUrl>,
}

/// A database's URL. Printed or serialized it is what may be shown of it, which the backend decides; until then, only
/// the path of a file is shown.
#[derive(Clone)]
pub struct DatabaseUrl {
    url: String,
    shown: String,
}

impl DatabaseUrl {
    /// The URL itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.url
    }

    /// The same, shown like this.
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
