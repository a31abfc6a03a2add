//! Moving a store: its records out of this database, and another store's records into it.

pub(crate) mod export;
pub(crate) mod import;
