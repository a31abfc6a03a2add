//! Credits, as the service wrote them.

pub(crate) mod amount;
pub(crate) mod balance;
