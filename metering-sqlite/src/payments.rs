//! Quotes, payment records and what follows from them. All of it is written by the writer thread.

pub(crate) mod claims;
pub(crate) mod quotes;
pub(crate) mod records;
pub(crate) mod settlements;
