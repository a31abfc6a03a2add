//! Signed authorizations that came with requests: their records, the claims of those who settle them, the places of the
//! transactions that execute them, and these transactions. All of it is written by the writer thread.

pub(crate) mod authorizations;
pub(crate) mod claims;
pub(crate) mod places;
pub(crate) mod rows;
pub(crate) mod submissions;
