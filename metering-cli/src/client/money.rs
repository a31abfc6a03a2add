//! Credits, as the service wrote them.

pub(crate) mod alert;
pub(crate) mod amount;
pub(crate) mod balance;
mod runway;
