//! Code shared by `metering keys` and `metering admin key`: the terms of keys as arguments, and keys as output.

pub(crate) mod document;
pub(crate) mod terms;
