//! Plans, quotes, payment records and what follows from them. All of it is written by the writer thread.

pub(crate) mod claims;
pub(crate) mod plans;
pub(crate) mod quotes;
pub(crate) mod recipients;
pub(crate) mod records;
pub(crate) mod scan_marks;
pub(crate) mod settlements;
pub(crate) mod unreadable;
