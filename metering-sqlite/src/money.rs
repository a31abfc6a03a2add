//! The ledger, and sums that must not overflow on the way to their total.

pub(crate) mod alert;
pub(crate) mod ledger;
