//! The crate's tests, in one binary.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod contract_list;
mod memory_store;
