//! The crate's integration tests, in one binary.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod actions;
mod calls;
mod held_requests;
mod keys;
mod notes;
mod payments;
mod search;
