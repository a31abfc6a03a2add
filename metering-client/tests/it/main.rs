//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod bodies;
mod calls;
mod failures;
mod http;
mod keys;
mod listing;
mod payments;
mod receipts;
mod requests;
mod script;
mod session;
mod stateless;
mod streams;
mod webhooks;
