//! Amounts of credits: the balance, its alert and how long it lasts.

pub(crate) mod alert;
pub(crate) mod amount;
pub(crate) mod balance;
mod runway;
