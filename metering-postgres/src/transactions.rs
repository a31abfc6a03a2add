//! How transactions run: one serialized write at a time across nodes, retries, and what became of a `COMMIT` without a
//! response.
//!
//! An outcome that cannot be found out is reported as unknown, never guessed.

pub(crate) mod finish;
pub(crate) mod outcome;
pub(crate) mod retry;
pub(crate) mod serialized;
