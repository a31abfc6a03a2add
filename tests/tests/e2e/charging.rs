//! Charges, refusals and refunds.

mod billing;
mod caps;
mod holds;
mod idempotency;
mod overload;
mod prices;
mod receipts;
mod refunds;
mod statements;
mod usage;
mod volumes;
