//! Who is calling: the credentials or the session of a request, and rate limits for callers without a key.

pub(crate) mod credentials;
pub(crate) mod limits;
pub(crate) mod session;
