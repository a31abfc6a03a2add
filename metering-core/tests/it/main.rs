//! The crate's integration tests, in one binary.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod charging_only;
mod child_accounts;
mod courier;
mod delegated;
mod examples;
mod keys;
#[cfg(feature = "tower")]
mod layer;
mod meter;
mod money;
mod payments;
mod signups;
mod statements;
mod stopped_clock;
mod usage_courier;
