//! Payments: code shared by `signup-pay` and `topup`.
//!
//! A payment has steps, and each is written to the [`journal`] before the next one starts: the amount to pay
//! ([`bill`]), the signed transaction, and that it was sent. After an interruption, the command continues from there. A
//! transaction that may have been sent is only ever sent again unchanged, never replaced by another.

pub(crate) mod abandon;
pub(crate) mod arguments;
pub(crate) mod bill;
pub(crate) mod claiming;
pub(crate) mod connection;
pub(crate) mod consent;
pub(crate) mod crediting;
pub(crate) mod entry;
pub(crate) mod journal;
pub(crate) mod market;
pub(crate) mod offered;
pub(crate) mod paid;
pub(crate) mod proof;
pub(crate) mod quote;
pub(crate) mod registration;
pub(crate) mod retry;
pub(crate) mod sending;
