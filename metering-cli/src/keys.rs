//! What `metering keys` and `metering admin key` have in common: the terms of keys as arguments, and keys as output.

pub(crate) mod document;
pub(crate) mod terms;
