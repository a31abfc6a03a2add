//! Free signups.

pub(crate) mod sessions;
