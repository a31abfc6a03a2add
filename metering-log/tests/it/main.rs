//! The formats against vectors of their texts and against other implementations.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod other_implementations;
mod rfc6962;
mod trees;
mod witness;
