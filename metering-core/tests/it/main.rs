//! The crate's integration tests, in one binary.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod charging_only;
#[cfg(feature = "conformance")]
mod contract_list;
mod examples;
mod keys;
#[cfg(feature = "tower")]
mod layer;
#[cfg(feature = "conformance")]
mod memory_store;
mod meter;
mod money;
#[cfg(feature = "tower")]
mod offers;
mod payments;
mod signups;
mod statements;
