//! The state of a store that can be read without changing it.

/// A store's schema and settings, read without changing anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version of its schema; `None` if it has none yet.
    pub schema: Option<i64>,
    /// The version that this program uses. Opening a store with an older one migrates it.
    pub supported: i64,
    /// Settings of the database that risk losing a commit, as `name = value`.
    pub unsafe_settings: Vec<String>,
    /// Rights that the database's user lacks, but a migration needs, as `may not ...`.
    pub missing_rights: Vec<String>,
}
