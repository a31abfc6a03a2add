//! Free signups.

pub(crate) mod links;
pub(crate) mod sessions;
