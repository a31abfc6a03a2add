//! The ledger.

pub(crate) mod ledger;
