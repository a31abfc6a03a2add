//! Who is calling: the credentials of a request, and rate limits for callers without a key.

pub(crate) mod credentials;
pub(crate) mod limits;
