//! Tests the formats against the test vectors of their specifications and against other implementations.
#![allow(clippy::unwrap_used, reason = "a failed assumption must fail the test")]

mod other_implementations;
mod rfc6962;
mod trees;
mod witness;
